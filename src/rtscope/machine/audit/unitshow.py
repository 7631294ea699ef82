"""
What `systemctl show` prints of a unit, as the section of a unit file.

It has no sections: a property in each line, in other words for some values: limits in
two properties, policies as numbers, times and sizes in full.
"""

import re

_PROPERTY = re.compile(r"[A-Z]\w*=.*")
_UNMISTAKABLE = re.compile(
    r"^(?:Id|LoadState|ActiveState|FragmentPath|LimitRTPRIOSoft|ExecMainPID)=",
    re.MULTILINE,
)
_INFINITE = ("infinity", str(2**64 - 1))
_UNSET = ("", "[not set]", "[unprintable]")
_LIMITS = ("LimitRTPRIO", "LimitMEMLOCK", "LimitRTTIME")
_COPIED = (
    *("User", "DynamicUser", "RestrictRealtime", "CPUSchedulingResetOnFork"),
    *("CPUAffinity", "AllowedCPUs", "CPUWeight", "StartupCPUWeight", "CPUShares"),
)
_PATH = re.compile(r"path=(\S+) ;")
_SECOND_US = 1_000_000
_TIMES = {"us": 1, "ms": 1_000, "s": _SECOND_US, "min": 60 * _SECOND_US}


def is_shown(text: str) -> bool:
    """Whether a text is what `systemctl show` prints."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or any(line.lstrip().startswith("[") for line in lines):
        return False
    some = sum(bool(_PROPERTY.fullmatch(line)) for line in lines)
    return bool(_UNMISTAKABLE.search(text)) and 2 * some > len(lines)


def service_of_properties(text: str) -> str:
    """Return the properties as a [Service] section, each on the line after its own."""
    lines = text.splitlines()
    properties = {}
    for line in lines:
        key, _, value = line.partition("=")
        properties[key] = value.strip()
    made = ["[Service]"]
    for line in lines:
        key, _, value = line.partition("=")
        made.append(_setting(key, value.strip(), properties))
    return "\n".join(made) + "\n"


def _setting(key: str, value: str, properties: dict[str, str]) -> str:
    if value in _UNSET or (value in _INFINITE and key not in _LIMITS):
        return "#"
    if key in _LIMITS:
        soft = properties.get(f"{key}Soft", value)
        return f"{key}={_limit(key, soft)}:{_limit(key, value)}"
    if key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        return f"{key}={value.upper()}"
    if key == "ExecStart":
        path = _PATH.search(value)
        return f"{key}={path[1]}" if path else "#"
    if key == "CPUQuotaPerSecUSec":
        share = _share(value)
        return f"CPUQuota={share}" if share else "#"
    policy = properties.get("CPUSchedulingPolicy", "0")
    if key in ("CPUSchedulingPolicy", "CPUSchedulingPriority"):
        # Of a unit that names none it prints 0.
        return "#" if policy == "0" else f"{key}={value}"
    if key == "Nice" and value == "0":
        return "#"
    return f"{key}={value}" if key in (*_COPIED, "Nice") else "#"


def _limit(key: str, value: str) -> str:
    if value in _INFINITE:
        return "infinity"
    return f"{value}us" if key == "LimitRTTIME" and value.isdecimal() else value


def _share(value: str) -> str:
    """Return `500ms` of each second as a percentage."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s|min)", value)
    if match is None:
        return ""
    return f"{float(match[1]) * _TIMES[match[2]] / _SECOND_US * 100:.2f}%"
