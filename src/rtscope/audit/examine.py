"""From a machine, a captured tree, a configuration or an image to answered checks."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rtscope.audit.catalogue import catalogue
from rtscope.audit.judges import JUDGES, NOTES
from rtscope.audit.model import (
    Answer,
    Check,
    CheckKind,
    Profile,
    not_applicable,
    unknown,
    worst_first,
)
from rtscope.audit.scene import Expected, Scene
from rtscope.kernel import identity
from rtscope.kernel.config import KernelConfig
from rtscope.kernel.identity import KernelIdentity, is_release_since
from rtscope.reading import Content, Reader

ARCH = "/proc/sys/kernel/arch"
"""As `uname -m` says it; since Linux 6.1."""


def paths(kinds: Iterable[CheckKind]) -> list[str]:
    """Return what checks read, each once."""
    wanted = [path for kind in kinds for path in kind.paths]
    return list(dict.fromkeys([*identity.PATHS, NOTES, ARCH, *wanted]))


def scene_of(
    reader: Reader,
    kinds: Iterable[CheckKind],
    *,
    profile: Profile = Profile.CONTROL,
    cpus: tuple[int, ...] | None = None,
    expected: Expected | None = None,
) -> Scene:
    """Read all that the checks need, in two round trips; raises TargetError."""
    files = reader.read_many(paths(kinds))
    kernel = identity.identify(reader, files=files)
    scene = Scene(files, kernel, profile=profile, cpus=cpus, expected=expected)
    return replace(scene, arch=scene.text(ARCH) or _arch_by_files(files))


def scene_of_config(
    config: KernelConfig,
    *,
    profile: Profile = Profile.CONTROL,
    banner: str | None = None,
    expected: Expected | None = None,
) -> Scene:
    """Return what a configuration, or an image with its banner, tells alone."""
    kernel = identity.identify_config(config, banner=banner)
    files: dict[str, Content] = {identity.BANNER: banner.encode()} if banner else {}
    return Scene(
        files,
        kernel,
        profile=profile,
        arch=_arch_by_config(config),
        expected=expected,
        alone=True,
    )


def examine(scene: Scene, kinds: Iterable[CheckKind]) -> list[Check]:
    """Answer the checks that fit the profile, worst first."""
    return worst_first(
        [_answer(kind, scene) for kind in kinds if scene.profile in kind.profiles]
    )


def verifying() -> list[CheckKind]:
    """Return the checks of `rtscope kernel verify`."""
    return [kind for kind in catalogue().values() if kind.verifies]


def _answer(kind: CheckKind, scene: Scene) -> Check:
    answer = _gate(kind, scene) or JUDGES[kind.judge](kind, scene)
    return Check(
        kind, kind.weighs(scene.profile), answer.outcome, answer.says, answer.evidence
    )


def _gate(kind: CheckKind, scene: Scene) -> Answer | None:
    """Answer for a check that is not about this kernel or machine."""
    if scene.alone and not kind.about_config and kind.judge != "same_kernel":
        return unknown("only a running machine tells")
    if kind.archs and scene.arch is None:
        return unknown("the architecture is not known")
    if kind.archs and scene.arch not in kind.archs:
        return not_applicable(f"not on {scene.arch}")
    return _gate_by_version(kind, scene.kernel)


def _gate_by_version(kind: CheckKind, kernel: KernelIdentity) -> Answer | None:
    for version, wanted in ((kind.since, True), (kind.until, False)):
        if version is None:
            continue
        is_since = is_release_since(kernel.release, version)
        text = f"Linux {version[0]}.{version[1]}"
        if is_since is None:
            return unknown(f"whether this is {text} or later is not known")
        if is_since is not wanted:
            return not_applicable(f"{'before' if wanted else 'since'} {text}")
    return None


# The option that each architecture's configuration always has.
_ARCH_OPTIONS = {
    "x86_64": "CONFIG_X86_64",
    "aarch64": "CONFIG_ARM64",
    "riscv64": "CONFIG_RISCV",
    "armv7l": "CONFIG_ARM",
}


def _arch_by_config(config: KernelConfig) -> str | None:
    for arch, option in _ARCH_OPTIONS.items():
        if config.options.get(option) == "y":
            return arch
    return None


def _arch_by_files(files: Mapping[str, Content]) -> str | None:
    """Guess from the CPU's own words where the kernel does not say it."""
    text = files.get("/proc/cpuinfo")
    if not isinstance(text, bytes):
        return None
    marks = {b"vendor_id": "x86_64", b"CPU implementer": "aarch64", b"isa\t": "riscv64"}
    return next((arch for mark, arch in marks.items() if mark in text), None)
