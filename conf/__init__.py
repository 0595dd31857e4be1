"""vpref's Hydra configs, importable as `vpref.conf`."""
