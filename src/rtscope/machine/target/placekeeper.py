"""
The process that holds a place of labgrid for rtscope, until the pipe to it closes.

    python -m rtscope.machine.target.placekeeper PLACE

It says two lines of JSON: {"host": "ssh://root@192.0.2.7:22"}, once the place is
acquired, has power and answers, and {"given_back": true} at its end; or {"error": why}.
Ctrl-C does not reach it; a signal to end it gives the place back first.
"""

import contextlib
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass, field

from rtscope.host import process
from rtscope.host.errors import TargetError, UsageError, first_of
from rtscope.host.files.jsontext import json_text
from rtscope.machine.target.address import parse_address

CLIENT = (sys.executable, "-P", "-m", "labgrid.remote.client")

CLIENT_S = 30.0
"""For one word to the coordinator, or to a switch of power."""

BOOT_S = 180.0
"""For a board to answer after it got power."""

POLL_S = 1.0
CONNECT_S = 5.0

MOST_NAMED = 10

NO_POWER = "no compatible resource"
"""labgrid's word for a place whose power nothing switches."""


class _Gone(Exception):
    """rtscope has ended, or does not want the place any more."""


@dataclass(slots=True)
class _Place:
    """A place, and what was done to it."""

    name: str
    undo: list[tuple[str, ...]] = field(default_factory=list)
    """Words for labgrid's client, the last one first."""

    def take(self) -> str:
        """Acquire it and switch it on; return its host, as ssh takes it."""
        self._refuse_unknown()
        self.undo.append(("release",))
        try:
            self._client("acquire")
        except TargetError as error:
            if not isinstance(error.__cause__, TimeoutError):
                self.undo.clear()
            raise
        _refuse_gone()
        was_off = self._switch_on()
        host, address, port = self._host()
        if was_off:
            _wait_for_ssh(address, port)
        return host

    def give_back(self) -> None:
        """Take back what was done; TargetError for the first thing that failed."""
        failed: TargetError | None = None
        while self.undo:
            words = self.undo.pop()
            try:
                self._client(*words)
            except TargetError as error:
                failed = failed or error
        if failed is not None:
            raise TargetError(
                f"not given back: {failed}; type labgrid-client -p {self.name} release"
            )

    def _refuse_unknown(self) -> None:
        """Refuse another name: labgrid would take a part of one for the whole."""
        lines = self._client("places").splitlines()
        names = [words[0] for line in lines if (words := line.split())]
        if self.name not in names:
            known = first_of(MOST_NAMED, names) or "none"
            raise TargetError(f"no such place; the coordinator has: {known}")

    def _switch_on(self) -> bool:
        """Switch it on if it is off; tell whether it was. Without a switch it is on."""
        try:
            state = self._client("power", "get")
        except TargetError as error:
            if NO_POWER in str(error):
                return False
            raise
        if not state.split() or state.split()[-1] != "off":
            return False
        self.undo.append(("power", "off"))
        self._client("power", "on")
        _refuse_gone()
        return True

    def _host(self) -> tuple[str, str, int]:
        """Return its host for ssh, with address and port."""
        from labgrid import Target
        from labgrid.exceptions import NoResourceFoundError
        from labgrid.resource import RemotePlace

        target = Target("rtscope")
        RemotePlace(target, name=self.name)
        try:
            service = target.get_resource("NetworkService")
        except NoResourceFoundError as error:
            raise TargetError(
                "it has no NetworkService, or several: the exporter names address and "
                "user of its board there"
            ) from error
        extra = service.extra or {}
        if extra.get("proxy_required"):
            raise TargetError(
                f"{service.address} is reached through {extra.get('proxy')} alone: "
                "write a ProxyJump into ~/.ssh/config, acquire the place yourself, and "
                f"name ssh:{service.address}"
            )
        address, port = str(service.address), int(service.port)
        literal = f"[{address}]" if ":" in address else address
        user = f"{service.username}@" if service.username else ""
        host = f"ssh://{user}{literal}:{port}"
        try:
            parse_address(f"ssh:{host}")
        except UsageError as error:
            raise TargetError(f"its NetworkService has no host: {error}") from error
        return host, address, port

    def _client(self, *words: str) -> str:
        """Return what labgrid's client prints; TargetError if it fails."""
        done = process.run((*CLIENT, "-p", self.name, *words), timeout_s=CLIENT_S)
        if done.status == 0:
            return done.stdout.decode("utf-8", "replace")
        lines = done.stderr.strip().splitlines() or [f"status {done.status}"]
        said = lines[-1].rpartition("Error: ")[2]
        raise TargetError(f"labgrid {' '.join(words)}: {said[:300]}")


def _refuse_gone() -> None:
    """Raise _Gone if nobody waits for the place any more."""
    if _is_gone(0):
        raise _Gone


def _is_gone(wait_s: float | None) -> bool:
    """Whether the pipe closes within a time, None: ever; nothing else comes there."""
    return bool(select.select([sys.stdin], [], [], wait_s)[0])


def _wait_for_ssh(address: str, port: int) -> None:
    """Wait until something answers as ssh does; TargetError if nothing does."""
    end = time.monotonic() + BOOT_S
    while time.monotonic() < end:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((address, port), CONNECT_S) as one,
        ):
            if one.recv(4) == b"SSH-":
                return
        if _is_gone(POLL_S):
            raise _Gone
    raise TargetError(
        f"{address} port {port} does not answer as ssh within {BOOT_S:.0f} s after its "
        "power was switched on; see its console: labgrid-client console"
    )


def _say(**what: object) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json_text(what, indent=None))
        sys.stdout.flush()


def main() -> int:
    """Hold the place; the exit status is 0 if it was held and given back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for signo in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, signal.default_int_handler)
    place, errors = _Place(sys.argv[1]), 0
    try:
        _say(host=place.take())
        _is_gone(None)
    except TargetError as error:
        errors += 1
        _say(error=str(error))
    except (_Gone, KeyboardInterrupt):
        pass
    for signo in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, signal.SIG_IGN)
    try:
        place.give_back()
        _say(given_back=True)
    except TargetError as error:
        errors += 1
        _say(error=str(error))
    return min(errors, 1)


if __name__ == "__main__":
    sys.exit(main())
