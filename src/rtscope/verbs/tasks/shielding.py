"""`rtscope tasks --shield`: CPUs kept for a program, or until Ctrl-C."""

import os
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from typing import Protocol

from rtscope.cli.console import put_blocks, put_json, say
from rtscope.cli.shielding import run_behind, say_restored
from rtscope.host.errors import UsageError
from rtscope.machine.settings.shield import GROUP, shield_cpus, shielded
from rtscope.machine.target import Target, agent_file
from rtscope.machine.target.address import address_of, open_target
from rtscope.present.formats.shield import shield_blocks, shield_document

LOOK_S = 0.5


class Asked(Protocol):
    """What `TasksRequest` has of this."""

    @property
    def target(self) -> str:
        """The machine."""
        ...

    @property
    def shield(self) -> str | None:
        """The CPUs."""
        ...

    @property
    def json(self) -> bool:
        """Whether standard output is JSON."""
        ...


def shield_held(request: Asked, command: Sequence[str]) -> int:
    """Hold the shield while the command runs; without one until Ctrl-C."""
    if request.shield is None:
        raise UsageError(
            "a COMMAND runs behind a shield: rtscope tasks --shield 2-3 -- "
            f"{shlex.join(command)}"
        )
    if command and "--" not in sys.argv:
        raise UsageError(
            f"before the program write --: rtscope tasks --shield {request.shield} -- "
            f"{shlex.join(command)}"
        )
    cpus = shield_cpus(request.shield, "--shield")
    address = address_of(request.target)
    if command and not address.is_here:
        raise UsageError(
            f"--target {request.target}: a COMMAND runs on this machine; leave it out, "
            "and the shield lasts until Ctrl-C"
        )
    if command and request.json:
        raise UsageError("--json: standard output is the COMMAND's; leave one out")
    with open_target(address, may_ask=False) as machine:
        if not command:
            return _hold(machine, cpus, json=request.json)
        start = [str(agent_file(platform.machine())), "start", "--shield", "--"]
        return run_behind(machine, cpus, [*start, *command], environ=os.environ)


def _hold(machine: Target, cpus: tuple[int, ...], *, json: bool) -> int:
    with shielded(machine, cpus) as (shield, holding):
        if json:
            put_json(shield_document(shield))
        else:
            put_blocks(*shield_blocks(shield))
            put_blocks(f"To bring a process in: echo PID > {GROUP}/cgroup.procs")
            say("the shield lasts until Ctrl-C")
        try:
            while True:
                time.sleep(LOOK_S)
                holding.check()
        except KeyboardInterrupt:
            pass
    say_restored(shield)
    return 0
