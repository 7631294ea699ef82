"""`rtscope audit --apply` and `--restore`: change settings, and restore them."""

from collections.abc import Sequence
from dataclasses import replace

from rtscope.audit.catalogue import catalogue
from rtscope.audit.context import AuditContext, Observed, refuse_absent
from rtscope.audit.examine import examine, read_context
from rtscope.audit.model import Check, CheckKind, Profile
from rtscope.cli.audit import AuditRequest
from rtscope.cli.console import put_json, stderr_console, stdout_console
from rtscope.errors import UsageError
from rtscope.machine.reader import Reader
from rtscope.report.formats.audit import (
    print_plan,
    print_tuning,
    restored_document,
    restored_lines,
    tuning_document,
)
from rtscope.target.address import address_of, open_target
from rtscope.tuning import settings
from rtscope.tuning.remedies import TuningPlan, chosen, plan, undone_by, with_settings


def apply(request: AuditRequest, named: str) -> int:
    """Apply the remedies of failed checks; 0 if all named checks pass afterwards."""
    names = tuple(word.strip() for word in named.split(","))
    kinds = chosen(names)
    _refuse_other_profiles(names, kinds, request.profile)
    with open_target(address_of(request.target)) as machine:
        context, checks = _look(machine.reader, kinds, request)
        planned = _without_unnamed(plan(context, checks), names)
        if not request.json:
            _show(planned, context)
        if request.dry_run or not planned.changes:
            if request.json:
                put_json(tuning_document(planned, None))
            return int(bool(planned.impossible))
        done = settings.apply(machine, planned.changes)
        touched = {change.check for change in planned.changes}
        again = [kind for kind in kinds if kind.id in touched]
        _, after = _look(machine.reader, again, request)
    if request.json:
        put_json(tuning_document(planned, done, after))
    else:
        with stdout_console() as console:
            print_tuning(done, console, after=after)
    good = not done.refused and not planned.impossible
    return int(not good or any(check.failed for check in after))


def restore(target: str | None, *, json: bool) -> int:
    """Restore all changed settings; 0 if no changed setting remains."""
    with open_target(address_of(target)) as machine:
        back, refused = settings.restore(machine)
    if json:
        put_json(restored_document(back, refused))
        return int(bool(refused))
    with stdout_console() as console:
        for line in restored_lines(back):
            console.print(line, markup=False)
        if not back and not refused:
            console.print("no changed settings to restore")
        for failed in refused:
            console.print(
                f"NOT restored: {failed.knob} to {failed.value}: {failed.reason} "
                f"({failed.cause})",
                markup=False,
                soft_wrap=True,
            )
    return int(bool(refused))


def _look(
    reader: Reader, kinds: Sequence[CheckKind], request: AuditRequest
) -> tuple[AuditContext, list[Check]]:
    """Check a machine, and read the settings that remedies would write."""
    wanted = [*kinds, catalogue()["irqbalance"]]
    context = read_context(
        reader,
        wanted,
        profile=request.profile,
        cpus=request.cpu_list,
        observed=Observed(),
    )
    refuse_absent(context)
    order = {kind.id: place for place, kind in enumerate(kinds)}
    checks = sorted(examine(context, kinds), key=lambda check: order[check.kind.id])
    return with_settings(context, kinds, reader), checks


def _without_unnamed(planned: TuningPlan, names: Sequence[str]) -> TuningPlan:
    """Leave out passed checks that were not named, unless there is nothing else."""
    named = {name: says for name, says in planned.good.items() if name in names}
    return replace(planned, good=named) if planned.changes or named else planned


def _refuse_other_profiles(
    names: Sequence[str], kinds: Sequence[CheckKind], profile: Profile
) -> None:
    for kind in kinds:
        if profile not in kind.profiles and kind.id in names:
            raise UsageError(
                f"{kind.id} is no check of the profile {profile.value}: add "
                f"--profile {min(kind.profiles).value}"
            )


def _show(planned: TuningPlan, context: AuditContext) -> None:
    with stdout_console() as console:
        print_plan(planned, console)
    if service := undone_by(context, planned.changes):
        stderr_console().print(
            f"rtscope: {service} will undo this within seconds; stop it first: "
            f"systemctl stop {service}"
        )
