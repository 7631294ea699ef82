"""
Commands for a board's shell, whatever that is and whatever it prints by itself.

sshd hands a command to the login shell of the user. That may be fish or csh, which
quote differently from sh, and its start-up files may print. So a command travels as
one word of harmless characters that every shell passes on unchanged, is run by sh, and
says a word agreed upon before it says anything else.
"""

import secrets
import shlex
import string
from dataclasses import dataclass, field

from rtscope.errors import TargetError

# The rest means something in single quotes of some shell: \ in fish, ! in csh.
_HARMLESS = frozenset(f"{string.ascii_letters}{string.digits} @%+=:,./_-".encode())

_UNPACK = """exec sh -c 'eval "$(printf %b "$1")"' sh """


def _new_word() -> bytes:
    return f"rtscope-{secrets.token_hex(8)}".encode()


@dataclass(frozen=True, slots=True)
class RemoteShell:
    """Wraps commands for one board."""

    word: bytes = field(default_factory=_new_word)
    """Stands alone on a line where the command's own output begins."""

    def wrap(self, script: str) -> str:
        """Return what to give to ssh so that sh runs the script."""
        whole = f"echo; echo {self.word.decode()}; {script}"
        return f"{_UNPACK}'{_packed(whole)}'"

    def answer(self, stdout: bytes) -> str | None:
        """Return what the script has printed; None if the board never ran it."""
        _, found, answer = stdout.partition(b"\n" + self.word + b"\n")
        return answer.decode("utf-8", "replace") if found else None


def _packed(script: str) -> str:
    if "\0" in script:
        raise TargetError("a command cannot hold a NUL character")
    # printf %b of POSIX: \0 and up to three octal digits.
    return "".join(
        chr(byte) if byte in _HARMLESS else f"\\0{byte:03o}"
        for byte in script.encode("utf-8", "surrogateescape")
    )


def exec_line(argv: list[str]) -> str:
    """Return the script that becomes a program."""
    return f"exec {shlex.join(argv)}"
