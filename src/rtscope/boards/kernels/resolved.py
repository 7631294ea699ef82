"""
The requested settings, compared with the configuration that kbuild resolved.

kbuild silently drops settings that its rules do not allow, and builds, for example, a
kernel without PREEMPT_RT. Here every difference stops the build, with the reason.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rtscope.boards.kernels.kconfig import Symbol, near_names, unmet
from rtscope.host.errors import KernelError, UsageError, first_of
from rtscope.machine.kernelconfig import parse_config

MAX_NAMED = 8
_PREFIX = "CONFIG_"


@dataclass(frozen=True, slots=True)
class ConfigSetting:
    """One line of a fragment."""

    name: str
    """Without CONFIG_."""
    value: str
    fragment: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A symbol whose value is not the requested one."""

    setting: ConfigSetting
    got: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    """How two configurations differ: by name, each with its two values."""

    preemption: Mapping[str, tuple[str, str]]
    """The setting itself: which preemption model was chosen."""
    follows: Mapping[str, tuple[str, str]]
    """What follows from it by the rules of Kconfig."""
    other: Mapping[str, tuple[str, str]]
    """What does not: the two kernels differ in more than preemption."""


# kernel/Kconfig.preempt: what can be chosen there. PREEMPT__LL is 5.x and 6.x with the
# series of patches.
PREEMPTION = (
    "PREEMPT_NONE",
    "PREEMPT_VOLUNTARY",
    "PREEMPT",
    "PREEMPT__LL",
    "PREEMPT_LAZY",
    "PREEMPT_RT",
    "PREEMPT_RT_FULL",
    "PREEMPT_DYNAMIC",
)

_SETTING = re.compile(r"CONFIG_\w+=.*|# CONFIG_\w+ is not set")
# What was meant to be one, and would be a comment.
_NEARLY_OFF = re.compile(r"#+\s*(?:CONFIG_)?[A-Z0-9_]+\s+is\s+not\s+set\W*", re.I)

# Not settings, but what kbuild found when it read them.
_ENVIRONMENT = ("CC_VERSION_TEXT", "LOCALVERSION", "BUILD_SALT")


def requested_settings(fragments: Mapping[str, str]) -> tuple[ConfigSetting, ...]:
    """
    Return what fragments (text by name) ask for; the last one counts for a symbol.

    Raises UsageError for a line that kbuild would pass over, TargetError for a fragment
    that has no settings.
    """
    wanted: dict[str, ConfigSetting] = {}
    for fragment, text in fragments.items():
        _check_lines(fragment, text)
        for name, value in values_of(text, source=fragment, keep_n=True).items():
            wanted[name] = ConfigSetting(name, value, fragment)
    return tuple(wanted.values())


def overridden(
    fragments: Mapping[str, str],
) -> list[tuple[ConfigSetting, ConfigSetting]]:
    """Return what one fragment asks and a later one asks otherwise, as such pairs."""
    wanted: dict[str, ConfigSetting] = {}
    pairs = []
    for fragment, text in fragments.items():
        for name, value in values_of(text, source=fragment, keep_n=True).items():
            later = ConfigSetting(name, value, fragment)
            before = wanted.get(name, later)
            if before.value != value:
                pairs.append((before, later))
            wanted[name] = later
    return pairs


def requested_preemption(
    base: str, text: str, settings: Iterable[ConfigSetting]
) -> list[ConfigSetting]:
    """
    Return what a user's whole configuration asks of preemption, if no fragment does.

    The rest of it is no demand: it may be that of another version.
    """
    if any(one.name in PREEMPTION for one in settings):
        return []
    values = values_of(text, source=base)
    return [
        ConfigSetting(name, values[name], base) for name in PREEMPTION if name in values
    ]


def lost(base: Mapping[str, str], values: Mapping[str, str]) -> list[str]:
    """Return what is on in a configuration and off in what became of it."""
    return sorted(set(base) - set(values))


def values_of(text: str, *, source: str, keep_n: bool = False) -> dict[str, str]:
    """Return the values of a configuration, by names without CONFIG_."""
    options = parse_config(text.encode(), source=source).options
    return {
        name.removeprefix(_PREFIX): value
        for name, value in options.items()
        if keep_n or value != "n"
    }


def differences(
    settings: Iterable[ConfigSetting],
    values: Mapping[str, str],
    symbols: Mapping[str, Symbol],
) -> list[Difference]:
    """Return the settings that kbuild did not accept; it resolved them to `values`."""
    return [
        Difference(one, values.get(one.name, "n"), _reason(one, values, symbols))
        for one in settings
        if values.get(one.name, "n") != one.value
    ]


def unknown_and_off(
    settings: Iterable[ConfigSetting], symbols: Mapping[str, Symbol]
) -> dict[ConfigSetting, list[str]]:
    """Return the settings of unknown symbols to be off, with the names like each."""
    return {
        one: near_names(one.name, symbols)
        for one in settings
        if one.value == "n" and one.name not in symbols
    }


def refuse(mismatches: list[Difference], *, recipe: str) -> None:
    """Raise KernelError if there are differences, each with its reason."""
    if not mismatches:
        return
    lines = [
        f"\n    {d.setting.name}={d.setting.value} (of {d.setting.fragment}) became "
        f"{d.got or 'empty'}: {d.reason}"
        for d in mismatches[:MAX_NAMED]
    ]
    more = len(mismatches) - MAX_NAMED
    rest = f"\n    and {more} more" if more > 0 else ""
    raise KernelError(
        f"{recipe}: kbuild did not accept these settings:" + "".join(lines) + rest
    )


def differing_names(one: Mapping[str, str], two: Mapping[str, str]) -> list[str]:
    """Return the symbols in which two configurations differ; a missing one is n."""
    return sorted(n for n in {*one, *two} if one.get(n, "n") != two.get(n, "n"))


def compare_configs(
    one: Mapping[str, str], two: Mapping[str, str], names: Mapping[str, Iterable[str]]
) -> ConfigDiff:
    """
    Compare two configurations; `names` has the symbols that each can follow from.

    What follows is found by walking from the preemption setting over symbols that
    differ: each of them refers to one that is found already.
    """
    changed = {
        name: (one.get(name, "n"), two.get(name, "n"))
        for name in differing_names(one, two)
        if name not in _ENVIRONMENT
    }
    related = {name for name in PREEMPTION if name in changed}
    preemption = {name: changed[name] for name in sorted(related)}
    grown = True
    while grown:
        new = {
            n for n in changed if n not in related and related & set(names.get(n, ()))
        }
        related |= new
        grown = bool(new)
    return ConfigDiff(
        preemption=preemption,
        follows={n: v for n, v in changed.items() if n in related - set(preemption)},
        other={n: v for n, v in changed.items() if n not in related},
    )


def _check_lines(fragment: str, text: str) -> None:
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        is_meant = not bare.startswith("#") or _NEARLY_OFF.fullmatch(bare)
        if bare and is_meant and not _SETTING.fullmatch(line.rstrip()):
            raise UsageError(
                f"{fragment}, line {number}: {bare[:80]!r} sets nothing: write "
                "CONFIG_NAME=value or '# CONFIG_NAME is not set'"
            )


def _reason(
    setting: ConfigSetting, values: Mapping[str, str], symbols: Mapping[str, Symbol]
) -> str:
    symbol = symbols.get(setting.name)
    if symbol is None:
        near = near_names(setting.name, symbols)
        hint = f"; near: {', '.join(near)}" if near else ""
        return f"this source has no such symbol{hint}"
    if setting.value == "n":
        return _why_on(symbol, values)
    missing = [_needs(parts, values) for parts in symbol.definitions]
    if all(missing):
        return f"needs {min(missing, key=len)}"
    return _why_not_chosen(symbol, values, "chosen") or (
        "kbuild chose otherwise (a choice of which one can be on, or a range)"
    )


def _needs(parts: tuple[str, ...], values: Mapping[str, str]) -> str:
    return " and ".join(text for part in parts for text in unmet(part, values))


def _why_on(symbol: Symbol, values: Mapping[str, str]) -> str:
    by = [
        name
        for name, condition in symbol.selected_by.items()
        if values.get(name, "n") != "n" and not (condition and unmet(condition, values))
    ]
    if by:
        return f"it is selected by {_named(by)}"
    return _why_not_chosen(symbol, values, "switched off") or (
        "kbuild chose otherwise (one of a choice has to be on)"
    )


def _why_not_chosen(symbol: Symbol, values: Mapping[str, str], verb: str) -> str:
    """Return why a symbol's prompt cannot be answered; empty if it can."""
    if not symbol.prompts:
        return f"it cannot be chosen; it follows from {_named(symbol.names())}"
    hidden = [unmet(text, values) for text in symbol.prompts if text]
    if len(hidden) == len(symbol.prompts) and all(hidden):
        return f"can be {verb} only with {' and '.join(hidden[0])}"
    return ""


def _named(names: Iterable[str]) -> str:
    return first_of(5, sorted(names))
