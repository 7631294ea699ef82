"""A bundle to run from: its parts into the cache, its campaign, what goes with it."""

from pathlib import Path

from rtscope.boards.parts.bundle import Bundle, import_bundle
from rtscope.boards.parts.cache import cache_dir
from rtscope.cli.console import log
from rtscope.host.errors import UsageError
from rtscope.host.files.documents import json_value
from rtscope.host.version import __version__
from rtscope.measure.campaign.file import from_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.record.directory.place import CAMPAIGN


def imported(file: Path | None) -> Bundle | None:
    """Put a bundle's parts into the cache; warn if another version wrote it."""
    if file is None:
        return None
    bundle = import_bundle(file, cache=cache_dir(), log=log)
    if bundle.rtscope != __version__:
        log(
            f"rtscope {bundle.rtscope} wrote this bundle, and this is rtscope "
            f"{__version__}: results may differ"
        )
    return bundle


def campaign_of(bundle: Bundle) -> Campaign:
    """Return the campaign of a bundle; UsageError if it has none, or a damaged one."""
    source = "the bundle's campaign"
    if CAMPAIGN.file not in bundle.files:
        raise UsageError("the bundle has no valid campaign: name a campaign file")
    document = json_value(bundle.files[CAMPAIGN.file], name=source, error=UsageError)
    return from_dict(document, source=source)


def refuse_unfit(bundle: Bundle, campaign: Campaign) -> None:
    """Raise UsageError if a campaign is not for the bundle's board and parts."""
    if campaign.board != bundle.board.name:
        raise UsageError(
            f"the bundle is for the board {bundle.board.name}: leave --target out"
        )
    parts = {
        "--qemu": campaign.qemu,
        "--lockfile": campaign.lockfile,
        "--guest-files": campaign.guest_files,
        "kernel.config": campaign.config,
    }
    for option, value in parts.items():
        if value:
            raise UsageError(f"{option}: a bundle contains its own parts; leave it out")
