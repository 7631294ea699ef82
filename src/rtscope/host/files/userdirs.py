"""Where the files of a user are, by the XDG base directory specification."""

from collections.abc import Mapping
from pathlib import Path


def user_dir(variable: str, below_home: str, environ: Mapping[str, str]) -> Path:
    """Return the directory in what a variable names, or else below the home."""
    base = environ.get(variable, "")
    if not base.startswith("/"):  # a relative path counts as none
        base = f"{environ.get('HOME') or '/root'}/{below_home}"
    return Path(base) / "rtscope"
