"""
Boot parameters that a kernel did not take, by its own messages. Pure.

A kernel starts with parameters that it does not know, or was built without, and says so
once in its log. It does not say so of every one: a word with a dot may be for a module
that comes later, and some handlers take any value.
"""

import re
from collections.abc import Mapping, Sequence

# init/main.c, print_unknown_bootoptions()
_UNKNOWN = re.compile(r'Unknown kernel command line parameters "([^"\n]*)"')
# fs/proc/proc_sysctl.c, process_sysctl_arg()
_SYSCTL = re.compile(r"to set sysctl parameter '([^'\n]*)'(?:: ([^\n]*))?")
# kernel/params.c, parse_args()
_INVALID = re.compile(r": `([^'\n]*)' (?:invalid|too large) for parameter `([^'\n]*)'")
# init/main.c, do_early_param(): without the value
_MALFORMED = re.compile(r"Malformed early option '([^'\n]*)'")
# kernel/cpu.c, mitigations_parse_cmdline()
_UNSUPPORTED = re.compile(r"Unsupported (mitigations=[^,\n]*),")
# kernel/cpu.c
_WITHOUT = re.compile(r"Kernel compiled without (\w+), ignoring '(\w+)'")

_BAD_VALUE = "not a value that this kernel takes"


def unknown_parameters(log: str) -> str | None:
    """Return the kernel's message on those that it does not know; None if none is."""
    match = _UNKNOWN.search(log)
    return match[0] if match else None


def words_in(message: str) -> tuple[str, ...]:
    """Return the words that such a message lists."""
    match = _UNKNOWN.search(message)
    return tuple(match[1].split()) if match else ()


def ignored_parameters(log: str, words: Sequence[str]) -> Mapping[str, str]:
    """Return which of these words the kernel did not take, each with the reason."""
    said = {word: "unknown to this kernel" for word in words_in(log)}
    for setting, why in _SYSCTL.findall(log):
        said[f"sysctl.{setting}"] = why or "cannot be set"
    for value, name in _INVALID.findall(log):
        said[f"{name}={value}" if value else name] = _BAD_VALUE
    for name in _MALFORMED.findall(log):
        same = [word for word in words if word.partition("=")[0] == name]
        said |= dict.fromkeys(same, _BAD_VALUE)
    for feature, name in _WITHOUT.findall(log):
        same = [word for word in words if word.partition("=")[0] == name]
        said |= dict.fromkeys(same, f"this kernel was built without {feature}")
    said |= dict.fromkeys(_UNSUPPORTED.findall(log), _BAD_VALUE)
    return {word: said[word] for word in words if word in said}
