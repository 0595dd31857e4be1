"""vpref: build, label and run a benchmark of dynamic human preferences for vision language models."""

from pathlib import Path

__version__ = "0.1.0"

# In a checkout that is not installed, `conf/` lies beside this package; installed, it is `vpref.conf`.
_here = Path(__file__).parent
if not (_here / "conf").is_dir() and (_here.parent / "conf" / "generate.yaml").is_file():
    __path__.append(str(_here.parent))
