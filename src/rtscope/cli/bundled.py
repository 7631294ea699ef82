"""A bundle as what is to be run: its board, its parts and its campaign."""

import json
import os
from pathlib import Path

from rtscope import __version__
from rtscope.board.bundle import CAMPAIGN, Bundle, import_bundle
from rtscope.board.cache import cache_dir
from rtscope.campaign.file import from_dict
from rtscope.campaign.model import Campaign
from rtscope.cli.console import stderr_console
from rtscope.errors import UsageError


def imported(file: Path | None) -> Bundle | None:
    """Put a bundle's parts into the cache; say so if another version wrote it."""
    if file is None:
        return None
    talk = stderr_console()
    bundle = import_bundle(
        file,
        cache=cache_dir(os.environ),
        say=lambda text: talk.print(f"rtscope: {text}", markup=False),
    )
    if bundle.rtscope != __version__:
        talk.print(
            f"rtscope: the bundle is of version {bundle.rtscope}, and this is "
            f"{__version__}: the board's job may differ, and the result with it",
            markup=False,
        )
    return bundle


def campaign_of(bundle: Bundle) -> Campaign:
    """Return the campaign of a bundle; UsageError if it has none, or a damaged one."""
    try:
        document = json.loads(bundle.files[CAMPAIGN])
    except (KeyError, ValueError) as error:
        raise UsageError("the bundle has no campaign: name a campaign file") from error
    return from_dict(document, source="the bundle's campaign")


def check(bundle: Bundle, campaign: Campaign) -> None:
    """Raise UsageError if a campaign is not for the bundle's board and parts."""
    if campaign.board != bundle.board.name:
        raise UsageError(
            f"the bundle has the board {bundle.board.name}: leave --target out"
        )
    given = {
        "--qemu": campaign.qemu,
        "--locked": campaign.locked,
        "--files": campaign.files,
    }
    for option, value in given.items():
        if value:
            raise UsageError(f"{option}: a bundle brings its parts; leave it out")
