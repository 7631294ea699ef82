"""Whether a QEMU takes a plugin with its options: tried without a machine."""

import json
from collections.abc import Sequence

from rtscope import process

PATIENCE_S = 30.0

WITHOUT_MACHINE = (
    *("-nodefaults", "-no-user-config", "-display", "none"),
    *("-M", "none", "-S", "-qmp", "stdio"),
)
"""Starts QEMU to be asked by what `questions` returns, on its standard input."""


def questions(*names: str) -> bytes:
    """Return commands of QEMU's machine protocol, and that which ends it."""
    words = ("qmp_capabilities", *names, "quit")
    return b"".join(json.dumps({"execute": word}).encode() + b"\n" for word in words)


def refusal(prefix: Sequence[str], options: Sequence[str]) -> str:
    """
    Return what a QEMU says if it refuses a plugin; empty if it takes it.

    `prefix` begins its command line, `options` are those of the plugin. Raises
    TargetError if it does not start, or does not end.
    """
    words = (*prefix, *WITHOUT_MACHINE, *options)
    done = process.run(words, timeout_s=PATIENCE_S, stdin=questions())
    if done.status == 0:
        return ""
    return done.stderr.strip() or f"exit status {done.status}"
