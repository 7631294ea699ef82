"""Consent to what a campaign or a search runs here, if it may have come by mail."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

import typer

from rtscope.host.errors import UsageError
from rtscope.host.escape import printable
from rtscope.measure.campaign.model import Campaign


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
    programs: dict[str, None] = {}
    for one in campaigns:
        recipes = [name for name in one.kernels if name.endswith(".toml")]
        programs |= dict.fromkeys(map(_build, recipes))
        if one.qemu:
            programs[f"the program {one.qemu} as QEMU"] = None
        if one.lockfile:
            programs[f"QEMU as the lock file {one.lockfile} names it"] = None
    if programs:
        _ask(list(programs))


def ask_builds(
    *, tree: Path | None, patches: str | None, kernels: Iterable[str]
) -> None:
    """
    Ask whether to build what a search names and does not come with rtscope.

    Git in a tree runs nothing that its settings name; what a build runs, Makefiles,
    patches and configurations name. Raises UsageError as `ask_programs` does.
    """
    builds = []
    if tree is not None:
        builds.append(f"the build of commits of the tree {tree}, by its Makefiles")
    if patches is not None:
        builds.append(f"the build of a kernel with the patches {patches}")
    for name in dict.fromkeys(kernels):
        if name.endswith(".toml"):
            builds.append(_build(name))
        elif Path(name).is_file():
            builds.append(f"the build of a kernel with the configuration {name}")
    if builds:
        _ask(builds, of="search")


def _build(recipe: str) -> str:
    return f"the build of the kernel {recipe}"


def _ask(programs: list[str], *, of: str = "campaign") -> None:
    words = "; ".join(map(printable, programs))
    if not sys.stdin.isatty():
        raise UsageError(f"this {of} runs {words}; if you trust it, add --yes")
    said = "\n  ".join(map(printable, programs))
    print(f"This {of} runs here:\n  {said}", file=sys.stderr)
    if not typer.confirm("Run it?", err=True):
        raise UsageError("not resumed")
