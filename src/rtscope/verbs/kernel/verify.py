"""Verify that a kernel is the intended one."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from rtscope.boards.kernels.catalogue import CONFIG, IMAGE
from rtscope.boards.kernels.recipe import find_recipe, recipe_names
from rtscope.boards.kernels.sourcekernel import newest_of
from rtscope.boards.parts.cache import Part, all_parts, cache_dir
from rtscope.cli.checks import (
    Checked,
    FailOn,
    fails,
    not_shown,
    read_config,
    refuse_two,
    show_checks,
)
from rtscope.cli.console import Json, say
from rtscope.cli.options import DisplayOptions
from rtscope.host.errors import TargetError, UsageError
from rtscope.machine.audit.context import AuditContext, Expected
from rtscope.machine.audit.examine import (
    context_of_config,
    examine,
    read_context,
    verifying,
)
from rtscope.machine.audit.model import (
    Check,
    CheckKind,
    CheckOutcome,
)
from rtscope.machine.filetree import FileReader
from rtscope.machine.kernelconfig import KernelConfig
from rtscope.machine.kernelimage import KernelImage, read_image
from rtscope.machine.target.address import address_of, open_target

SOURCES = ("target", "root", "config", "image")
"""The options of which one names the kernel."""

IDENTITY_CHECKS = ("preempt_rt", "running_kernel")
"""The checks of the identity; the others are about quality."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """The arguments and options of `rtscope kernel verify`."""

    name: Annotated[str | None, typer.Argument()] = None
    """Recipe of a built kernel, by name or path, e.g. ./my.toml."""
    target: str | None = None
    """
    Running machine: local, ssh:HOST or lab:PLACE (default: local), e.g. ssh:board.
    """
    root: Path | None = None
    """File tree captured from a machine, e.g. ./captured."""
    config: Path | None = None
    """Kernel configuration, e.g. .config."""
    image: Path | None = None
    """Kernel image built with IKCONFIG, e.g. ./bzImage."""
    against: str | None = None
    """Intended kernel: image, configuration or recipe, e.g. ./bzImage."""
    ordinary: bool = False
    """Intended kernel without PREEMPT_RT."""
    fail_on: FailOn = FailOn.LOW
    """Lowest severity that gives exit status 1 (default: low)."""
    json: Json = False
    display: DisplayOptions


def verify(request: VerifyRequest) -> int:
    """Verify that a kernel is the intended one, running or before its installation.

    Without an option, this verifies the kernel of this machine. The exit status is 1 if
    a check fails, 3 if PREEMPT_RT or the identity cannot be determined, and 4 if the
    configuration is an excerpt.
    """
    detail = request.display.detail
    sources = {key: getattr(request, key) for key in SOURCES}
    refuse_two(**sources)
    built, ordinary = None, request.ordinary
    if (name := request.name) is not None:
        if any(sources.values()):
            raise UsageError(
                f"{name} is a recipe: leave out --target, --root, --config "
                "and --image, or name the recipe with --against"
            )
        # Called by its name: the path in the cache is of no interest.
        built = read_config(built_part(name).file(CONFIG), called=name)
        # A recipe without `rt` is not meant to be PREEMPT_RT.
        ordinary = ordinary or not built.is_on("PREEMPT_RT")
    kinds = [k for k in verifying() if not (ordinary and k.id == "preempt_rt")]
    if request.against is None:
        kinds = [kind for kind in kinds if kind.function != "same_kernel"]
    if built is not None:
        context, what = context_of_config(built), built.source
    else:
        context, what = _context(kinds, request)
    if request.against is not None:
        context = replace(context, expected=expected_of(request.against))
    checks = examine(context, kinds)
    form = Checked(what, json=request.json, detail=detail)
    show_checks(checks, context, form)
    return fails(checks, request.fail_on) or not_shown(context) or _unproven(checks)


def _unproven(checks: list[Check]) -> int:
    """Print the checks of the identity with unknown result; return the exit status."""
    identity = [check for check in checks if check.kind.id in IDENTITY_CHECKS]
    unknown = [check for check in identity if check.outcome is CheckOutcome.UNKNOWN]
    for check in unknown:
        say(f"not proven: {check.kind.title}: {check.message}")
    return TargetError.exit_status if unknown else 0


def built_part(name: str) -> Part:
    """Return the cached files of a recipe's kernel; UsageError if it is not built."""
    recipe = find_recipe(name)
    part = newest_of(all_parts(cache_dir()), recipe)
    if part is None:
        raise UsageError(
            f"{recipe.name} is not built; build it: rtscope kernel build {name}"
        )
    return part


def expected_of(text: str) -> Expected:
    """Return the identity of an image, a configuration, or the kernel of a recipe."""
    path, called = Path(text), Path(text).name
    if text.endswith(".toml") or (not path.exists() and text in recipe_names()):
        path, called = built_part(text).file(IMAGE), text
    elif not path.exists() and "/" not in text:
        raise UsageError(
            f"--against {text}: neither a file nor a recipe; name an image, a "
            "configuration or a recipe (to list them: rtscope kernel list)"
        )
    try:
        image = read_image(path)
    except UsageError as not_an_image:
        try:
            config = read_config(path)
        except UsageError:
            raise not_an_image from None
        return Expected(called, config_digest=config.digest)
    return Expected(
        called,
        banner=image.banner,
        build_id=image.build_id,
        config_digest=image.config.digest if image.config else None,
    )


def _context(
    kinds: list[CheckKind], request: VerifyRequest
) -> tuple[AuditContext, str]:
    if (config := request.config) is not None:
        return context_of_config(read_config(config), of_build=False), str(config)
    if (image := request.image) is not None:
        image_file = read_image(image)
        return context_of_config(_config_in(image_file), banner=image_file.banner), str(
            image
        )
    if (root := request.root) is not None:
        if not root.is_dir():
            raise UsageError(f"{root}: no such directory")
        return read_context(FileReader(root), kinds), str(root)
    address, what = address_of(request.target), request.target or "local"
    if not address.is_here:
        with open_target(address) as board:
            return read_context(board.reader, kinds), what
    return read_context(FileReader(), kinds), what


def _config_in(image: KernelImage) -> KernelConfig:
    if image.config is None:
        raise UsageError(
            f"{image.source}: contains no configuration (built without IKCONFIG); name "
            "its configuration file: --config FILE"
        )
    return image.config
