"""`python -m vpref` is the command `vpref`."""

from vpref.cli import main

if __name__ == "__main__":
    main()
