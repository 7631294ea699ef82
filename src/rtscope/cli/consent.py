"""Consent to what a campaign has run on this machine, if it may have come by mail."""

import shlex
import sys
from collections.abc import Iterable

import typer

from rtscope.campaign.model import Campaign
from rtscope.errors import UsageError
from rtscope.report.escape import printable


def ask_command(campaign: Campaign) -> None:
    """Ask whether to run the custom command of a campaign; UsageError if not."""
    if campaign.command:
        _ask([f"the custom command {shlex.join(campaign.command)}"])


def ask_programs(campaigns: Iterable[Campaign]) -> None:
    """
    Ask whether to run the programs of this machine that campaigns name.

    Such a program is a QEMU from a path or from the addresses of a lock file, or the
    build of a source that a recipe in a file names. Raises UsageError if the user
    refuses, or cannot be asked.
    """
    found: dict[str, None] = {}
    for one in campaigns:
        recipes = [name for name in one.kernels if name.endswith(".toml")]
        found |= dict.fromkeys(f"the build of the kernel {name}" for name in recipes)
        if one.qemu:
            found[f"the program {one.qemu} as QEMU"] = None
        if one.lockfile:
            found[f"QEMU as the lock file {one.lockfile} names it"] = None
    if found:
        _ask(list(found))


def _ask(programs: list[str]) -> None:
    words = "; ".join(map(printable, programs))
    if not sys.stdin.isatty():
        raise UsageError(f"this campaign runs {words}; if you trust it, add --yes")
    said = "\n  ".join(map(printable, programs))
    print(f"This campaign runs here:\n  {said}", file=sys.stderr)
    if not typer.confirm("Run it?", err=True):
        raise UsageError("not resumed")
