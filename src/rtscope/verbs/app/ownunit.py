"""
The unit of systemd that a program runs in: what it says goes on in the new one.

Of a setting in both, the program's own unit counts where it says how the program is
started and what it may do; what the program has now counts for its policy, CPUs and
limits of them, as somebody may have changed it by hand.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from rtscope.machine.audit.unit import Assignment, Unit
from rtscope.verbs.app.service import Service, Setting

FROM_THE_PROGRAM = frozenset(
    {
        *("CPUSchedulingPolicy", "CPUSchedulingPriority", "CPUSchedulingResetOnFork"),
        *("CPUAffinity", "Nice", "LimitRTPRIO", "LimitMEMLOCK", "TimerSlackNSec"),
    }
)
"""Settings that are taken from what it has now, if it has something to say."""

STARTED_BY_ITS_UNIT = frozenset(
    {
        *("User", "Group", "SupplementaryGroups", "AmbientCapabilities", "UMask"),
        *("NoNewPrivileges", "WorkingDirectory", "OOMScoreAdjust"),
    }
)
"""If its unit does not say them, the program has changed them itself."""

TYPES_LIKE_EXEC = ("simple", "exec", "idle")


def is_its_own(unit: Unit, service: Service) -> bool:
    """Whether a unit starts this program: its command names it."""
    program = service.program
    argv = program.argv[0] if program.argv else ""
    names = {PurePosixPath(path).name for path in (program.executable or "", argv)}
    words = [word for line in unit.all("ExecStart") for word in line.value.split()]
    commands = {PurePosixPath(word.lstrip("@-:+!").strip('"')).name for word in words}
    return bool((names - {""}) & commands)


def with_own_unit(service: Service, unit: Unit) -> Service:
    """Return the service with all that the program's own unit says besides."""
    kept = [line for line in unit.own() if line.value]
    said = {line.key for line in kept}
    kind = unit.last("Type")
    if kind is not None and kind.value in TYPES_LIKE_EXEC:
        kept = [line for line in kept if line.key != "Type"]
        said -= {"Type"}
    return replace(
        service,
        settings=tuple([*_seen(service, said, unit), *_of_unit(service, kept)]),
        general=_section(unit, "Unit") or service.general,
        install=_section(unit, "Install") or service.install,
        unknown=tuple(
            one for one in service.unknown if not one.startswith("What it needs to be")
        ),
    )


def _seen(service: Service, said: set[str], unit: Unit) -> Iterator[Setting]:
    """Yield what was seen, without what its unit says or the program did itself."""
    for setting in service.settings:
        key = setting.key
        if key in FROM_THE_PROGRAM and key in said:
            own = unit.last(key)
            value = own.value if own is not None else ""
            differs = f" {unit.name} says {value}." if value != setting.value else ""
            yield replace(setting, why=setting.why + differs)
        elif key in STARTED_BY_ITS_UNIT and key not in said:
            yield Setting(
                f"No {key}=: {unit.name} does not say it, so the program changes it "
                f"itself: it has {setting.value}."
            )
        elif key == "DeviceAllow" or key not in said:
            yield setting


def _of_unit(service: Service, kept: list[Assignment]) -> Iterator[Setting]:
    now = {one.key for one in service.settings if one.key} & FROM_THE_PROGRAM
    devices = {
        one.value.split()[0] for one in service.settings if one.key == "DeviceAllow"
    }
    last = ""
    for line in kept:
        if line.key in now:
            continue
        if line.key == "DeviceAllow" and line.value.split()[0] in devices:
            continue
        file = line.where.rpartition(":")[0]
        why = "" if last == file else f"From here on as {file} says."
        last = file
        yield Setting(why, line.key, line.value)


def _section(unit: Unit, section: str) -> tuple[Setting, ...]:
    """Return a section of its unit; an alias can be of one unit alone."""
    lines = [
        line
        for line in unit.assignments
        if line.section == section and line.key != "Alias"
    ]
    return tuple(
        Setting("" if number else f"As {unit.name} says.", line.key, line.value)
        for number, line in enumerate(lines)
    )
