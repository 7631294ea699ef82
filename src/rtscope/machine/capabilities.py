"""Capabilities of the kernel: their names, and words for a set of them."""

CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL"),
    *("SETGID", "SETUID", "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE"),
    *("NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
    *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT"),
    *("SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME"),
    *("SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL"),
    *("SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM"),
    *("BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE"),
)
"""Bits of CapEff, <linux/capability.h>."""

MAX_LESS = 5
"""More are not named as those that a thread lacks."""

_LEAST_ALL = 37
"""Linux 3.16 knew as many; a kernel of today knows 41."""


def capability_names(bits: int) -> tuple[str, ...]:
    """Return the names of a set, as `sys_nice`; a bit without a name is its number."""
    known = {bit: name.lower() for bit, name in enumerate(CAPABILITIES)}
    return tuple(
        known.get(n, str(n)) for n in range(bits.bit_length()) if bits >> n & 1
    )


def capability_words(bits: int) -> str:
    """Return a set in words: `none`, `all`, `all but sys_time`, or the names."""
    length = bits.bit_length()
    lacking = ~bits & ((1 << length) - 1)
    if length >= _LEAST_ALL and lacking.bit_count() <= MAX_LESS:
        return " but ".join(filter(None, ("all", ", ".join(capability_names(lacking)))))
    return ", ".join(capability_names(bits)) or "none"
