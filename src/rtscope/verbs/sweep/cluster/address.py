"""Where a sweep computes: on this machine, or where a scheduler of Dask listens."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from rtscope.host.errors import UsageError, quote

LOCAL = "local"
_ADDRESS = re.compile(
    r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):([0-9]+)"
)
MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class Certificates:
    """The files of TLS, by which scheduler, workers and rtscope know each other."""

    ca: Path
    """Of the authority that signed all of them."""
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """A scheduler, and how to reach it."""

    url: str
    certificates: Certificates | None
    """None: plain, on this machine."""


def scheduler_address(
    text: str, *, ca: Path | None, certificate: Path | None, key: Path | None
) -> SchedulerAddress | None:
    """
    Return the scheduler that --on names; None for this machine itself.

    Raises UsageError for what is no address, for one that anybody could reach without
    a certificate, and for certificates that are missing or of no use.
    """
    files = {"--tls-ca": ca, "--tls-cert": certificate, "--tls-key": key}
    names = [name for name, file in files.items() if file is not None]
    if text == LOCAL:
        _refuse(names, "--on local needs no certificates")
        return None
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--on {quote(text)}: write local, tcp://127.0.0.1:PORT or tls://HOST:PORT"
        )
    if not 1 <= int(match[3][:6]) <= MAX_PORT:  # longer ones are too large anyway
        raise UsageError(
            f"--on {quote(text)}: a port is a number from 1 to {MAX_PORT}; write the "
            "one that dask scheduler prints"
        )
    if match[1] == "tcp":
        _refuse(names, f"--on {text}: plain tcp takes no certificates")
        if not _is_loopback(match[2]):
            raise UsageError(
                f"--on {text}: plain tcp is for 127.0.0.1 only: anybody in a network "
                "could run programs as you; write tls://HOST:PORT, with --tls-ca, "
                "--tls-cert and --tls-key"
            )
        return SchedulerAddress(text, None)
    if ca is None or certificate is None or key is None:
        missing = ", ".join(name for name in files if name not in names)
        raise UsageError(f"--on {text}: needs {missing} too")
    for name, file in files.items():
        if file is not None and not file.is_file():
            raise UsageError(f"{name} {file}: no such file")
    return SchedulerAddress(text, Certificates(ca, certificate, key))


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise UsageError(f"{why}: leave out {', '.join(names)}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
