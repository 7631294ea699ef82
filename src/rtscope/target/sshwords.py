"""What ssh says when it fails, and what to try then."""

import shlex

# Part of what ssh prints (it is never translated) -> what to try.
_ADVICE = (
    (
        "Host key verification failed",
        "log in once by hand and compare the key's fingerprint: ssh {host}; if the "
        "board was installed anew, forget its old key first: ssh-keygen -R {host}",
    ),
    (
        "Permission denied",
        "the board refused this user or key: try ssh {host}; to give it your key: "
        "ssh-copy-id {host}; a passphrase can be asked for on a terminal only: ssh-add",
    ),
    (
        "Could not resolve hostname",
        "is the name right? Short names can be defined in ~/.ssh/config",
    ),
    ("Connection refused", "is an SSH server running there, on this port?"),
    ("timed out", "is the board up, and reachable from here?"),
    ("No route to host", "is the board up, and reachable from here?"),
    ("Network is unreachable", "is the board up, and reachable from here?"),
    ("not allowed", "the board refused this user: try ssh {host}"),
)


def last_line(stderr: str) -> str:
    """Return ssh's own last words; empty if it said nothing."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def why_refused(host: str, *, status: int, stderr: str) -> str:
    """Return why there is no connection, or no shell behind it, and what to try."""
    name = shlex.quote(host)
    words = last_line(stderr)
    if status != FAILED:
        because = f" ({words})" if words else ""
        return (
            f"logged in, but commands are not run there{because}: the user needs a "
            f"login shell; does `ssh {name} uname -m` work?"
        )
    for part, advice in _ADVICE:
        if part in words:
            return f"{words}; {advice.format(host=name)}"
    return (
        f"cannot log in{': ' if words else ''}{words}; does `ssh {name} uname -m` work?"
    )


FAILED = 255
"""ssh's exit status when ssh itself failed; otherwise that of the command."""
