"""
Ask the drivers of network interfaces how long they delay interrupts.

The question is ETHTOOL_GCOALESCE of ioctl(2) SIOCETHTOOL, which every user may ask
(net/ethtool/ioctl.c); `ethtool -c` shows the same. Only interfaces that are up are
asked: the question would wake a device that sleeps.
"""

import array
import errno
import fcntl
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

SIOCETHTOOL = 0x8946
ETHTOOL_GCOALESCE = 0x0000000E

_WORDS = 23
"""Of struct ethtool_coalesce (include/uapi/linux/ethtool.h), 32 bits each."""
_PLACES = {
    "rx-usecs": 1,
    "rx-frames": 2,
    "tx-usecs": 5,
    "tx-frames": 6,
    "adaptive-rx": 10,
    "adaptive-tx": 11,
}
"""The words by the names of ethtool(8)."""

Coalescing = Mapping[str, int]
"""Of one interface, by the names of ethtool(8); empty: its driver does not tell."""


def ask_driver(interface: str) -> Coalescing:
    """Ask one driver; raises OSError, but for a driver that does not know the words."""
    words = array.array("I", [ETHTOOL_GCOALESCE, *[0] * (_WORDS - 1)])
    address, _ = words.buffer_info()
    # struct ifreq: a name of 16 bytes, and here a pointer, in a union of 24 bytes.
    request = struct.pack("16sP16x", interface.encode(), address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            fcntl.ioctl(sock, SIOCETHTOOL, request)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                return {}
            raise
    return {name: words[place] for name, place in _PLACES.items()}


def read_coalescing(
    folder: Path = Path("/sys/class/net"),
    *,
    ask: Callable[[str], Coalescing] = ask_driver,
) -> tuple[Mapping[str, Coalescing] | None, str]:
    """Return what each interface of hardware that is up says; or None and why not."""
    by_interface: dict[str, Coalescing] = {}
    try:
        for interface in sorted(folder.iterdir()):
            if not (interface / "device").exists():
                continue
            if (interface / "operstate").read_text("utf-8").strip() == "up":
                by_interface[interface.name] = ask(interface.name)
    except OSError as error:
        return None, f"the network interfaces cannot be asked: {error.strerror}"
    return by_interface, ""
