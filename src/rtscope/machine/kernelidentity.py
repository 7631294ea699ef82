"""
Say which kernel a machine runs: is it PREEMPT_RT, how it preempts, how we know.

Three witnesses speak on PREEMPT_RT: the version that the build wrote (`uname -v`), the
configuration, and /sys/kernel/realtime. The last one is never enough: patch sets have
it, mainline (6.12 and later) does not, and tools that asked it alone answered wrongly.
Witnesses that contradict each other leave the question open.

A kernel starts with parameters that it does not know, or was built without, and says so
once in its log. It does not say so of every one: a word with a dot may be for a module
that comes later, and some handlers take any value.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope.machine.kernelconfig import (
    RUNNING_CONFIG,
    ConfigSearch,
    KernelConfig,
    find_config,
)
from rtscope.machine.reader import Content, Missing, Reader, text_of

RELEASE = "/proc/sys/kernel/osrelease"
VERSION = "/proc/sys/kernel/version"
BANNER = "/proc/version"
CMDLINE = "/proc/cmdline"
REALTIME = "/sys/kernel/realtime"
DEBUG_PREEMPT = "/sys/kernel/debug/sched/preempt"
PATHS = (RELEASE, VERSION, BANNER, CMDLINE, REALTIME, DEBUG_PREEMPT, RUNNING_CONFIG)
"""What `identify` reads first; the kernel's configuration may need one more reading."""

# One variable of init/Makefile holds the flag, so PREEMPT_RT shuts out the others.
# Until 5.16, scripts/mkcompile_h wrote "PREEMPT RT" or "PREEMPT_RT".
_FLAG = re.compile(r"\bPREEMPT(?:_[A-Z]+| RT\b)?")
_RT_FLAGS = {"PREEMPT RT", "PREEMPT_RT"}
_MARKED = re.compile(r"\((\w+)\)")
_LOGGED = re.compile(r"Dynamic Preempt: (none|voluntary|full|lazy)\b")
_NUMBERS = re.compile(r"(\d+)\.(\d+)")

_RT_OPTIONS = ("PREEMPT_RT", "PREEMPT_RT_FULL")
_MODEL_OPTIONS = {
    "PREEMPT_NONE": "none",
    "PREEMPT_VOLUNTARY": "voluntary",
    "PREEMPT_LAZY": "lazy",
    "PREEMPT": "full",
    "PREEMPT__LL": "full",
}
"""kernel/Kconfig.preempt; under PREEMPT_DYNAMIC the choice is the default at boot."""


@dataclass(frozen=True, slots=True)
class KernelIdentity:
    """A kernel, and the evidence for each property."""

    release: str | None
    """`uname -r`"""
    version: str | None
    """`uname -v`"""
    preempt_rt: bool | None
    """None if unknown, or if the evidence is contradictory."""
    how: str
    preemption_model: str | None
    """`PREEMPT_RT`, `full`, `lazy`, `voluntary` or `none`: the one in effect."""
    model_how: str
    config: KernelConfig | None
    config_source: str
    """Where the configuration was found, or why none was."""
    requested: str = ""
    """Of a fragment or defconfig, which no kernel has: what it is and asks for."""


@dataclass(frozen=True, slots=True)
class _Evidence:
    release: str | None
    flag: str | None
    search: ConfigSearch
    cmdline: str = ""
    realtime: str | None = None
    debug: str | None = None
    log: str = ""

    @property
    def config(self) -> KernelConfig | None:
        return self.search.config

    @property
    def dynamic(self) -> bool:
        if self.config is not None:
            return self.config.is_on("PREEMPT_DYNAMIC")
        return self.flag == "PREEMPT_DYNAMIC" or self.debug is not None


def identify(
    reader: Reader,
    *,
    files: Mapping[str, Content] | None = None,
    kernel_log: str = "",
) -> KernelIdentity:
    """
    Identify the kernel that a machine runs.

    `files` are PATHS if the caller has read them already, with other facts;
    `kernel_log` is the log since boot, where it can be had.
    """
    if files is None:
        files = reader.read_many(PATHS)
    release, version = _text(files, RELEASE), _text(files, VERSION)
    if banner := _text(files, BANNER):
        # All that a board's bring-up note often has: linux_banner of init/version.c.
        words = banner.split()
        release = release or (words[2] if len(words) > 2 else None)
        version = version or f"#{banner.rpartition('#')[2]}"
    running = files.get(RUNNING_CONFIG, Missing())
    evidence = _Evidence(
        release=release,
        flag=_flag_in(version or ""),
        cmdline=_text(files, CMDLINE) or "",
        realtime=_text(files, REALTIME),
        debug=_text(files, DEBUG_PREEMPT),
        log=kernel_log,
        search=find_config(reader, release, running=running),
    )
    return _identity(evidence, version)


def identify_config(
    config: KernelConfig, *, banner: str | None = None, of_build: bool = True
) -> KernelIdentity:
    """
    Identify a kernel that does not run, by its configuration and its banner.

    Without `of_build` an extract is a fragment or defconfig, and of no kernel.
    """
    words = (banner or "").split()
    release = words[2] if len(words) > 2 else config.release
    flag = _flag_in((banner or "").rpartition("#")[2])
    if not config.whole and not of_build:
        return _only_requested(config, release)
    evidence = _Evidence(release, flag, ConfigSearch(config, why=""))
    return _identity(evidence, version=None)


def _only_requested(config: KernelConfig, release: str | None) -> KernelIdentity:
    """Answer for a fragment or defconfig: it asks, and a build decides."""
    asked = [
        f"{name}={config.options[f'CONFIG_{name}']}"
        for name in (*_RT_OPTIONS, *_MODEL_OPTIONS, "PREEMPT_DYNAMIC")
        if f"CONFIG_{name}" in config.options
    ]
    asks = f"it asks for {', '.join(asked)}" if asked else "it asks for no preemption"
    requested = f"{config.called}: {asks}"
    how = (
        f"{requested}; what a build makes of it is unknown: verify the .config that "
        "make wrote"
    )
    return KernelIdentity(
        release=release,
        version=None,
        preempt_rt=None,
        how=how,
        preemption_model=None,
        model_how=how,
        config=config,
        config_source=config.source,
        requested=requested,
    )


def _flag_in(version: str) -> str | None:
    flag = _FLAG.search(version)
    return flag[0] if flag else None


def _identity(evidence: _Evidence, version: str | None) -> KernelIdentity:
    preempt_rt, how = _is_realtime(evidence)
    model, model_how = _model(evidence, preempt_rt=preempt_rt)
    config = evidence.config
    return KernelIdentity(
        release=evidence.release,
        version=version,
        preempt_rt=preempt_rt,
        how=how,
        preemption_model=model,
        model_how=model_how,
        config=config,
        config_source=config.source if config else evidence.search.why,
    )


def is_release_since(release: str | None, since: tuple[int, int]) -> bool | None:
    """Whether a `uname -r` is of Linux X.Y or later; None if it has no numbers."""
    numbers = _NUMBERS.match(release or "")
    return (int(numbers[1]), int(numbers[2])) >= since if numbers else None


def boot_values(cmdline: str, name: str) -> tuple[str, ...]:
    """Return each value of `name=` on the kernel's command line, in order."""
    # What follows a lone -- is for init, not for the kernel.
    words = cmdline.partition(" -- ")[0].split()
    return tuple(
        word.removeprefix(f"{name}=") for word in words if word.startswith(f"{name}=")
    )


def turned_off(cmdline: str, name: str) -> str:
    """Return the last `name=` if it says no, as kstrtobool() reads it; else empty."""
    *_, last = ("", *boot_values(cmdline, name))
    return f"{name}={last}" if re.match(r"[nf0]|of", last, re.IGNORECASE) else ""


def realtime_by_version(version: str) -> bool | None:
    """Whether a `uname -v` names PREEMPT_RT; None if it names no preemption at all."""
    flag = _flag_in(version)
    return None if flag is None else flag in _RT_FLAGS


def _is_realtime(seen: _Evidence) -> tuple[bool | None, str]:
    answers = [a for a in (_by_uname(seen), _by_config(seen)) if a is not None]
    if not answers:
        if seen.realtime == "1":
            return None, f"only {REALTIME} says so, which is not enough"
        return None, (
            "uname -v does not say so, and the configuration is unknown: "
            f"{seen.search.why or 'it is an extract that does not mention it'}"
        )
    if seen.realtime in {"0", "1"}:
        answers.append((seen.realtime == "1", f"{REALTIME} says {seen.realtime}"))
    evidence = "; ".join(says for _, says in answers)
    if len({answer for answer, _ in answers}) > 1:
        return None, f"contradictory: {evidence}"
    return answers[0][0], evidence


def _by_uname(seen: _Evidence) -> tuple[bool, str] | None:
    if seen.flag is None:
        return None
    return seen.flag in _RT_FLAGS, f"uname -v says {seen.flag}"


def _by_config(seen: _Evidence) -> tuple[bool, str] | None:
    if seen.config is None:
        return None
    for option in _RT_OPTIONS:
        if seen.config.is_on(option):
            return True, f"CONFIG_{option}=y in {seen.config.source}"
    if not seen.config.whole and not _mentions_a_model(seen.config):
        return None
    return False, f"CONFIG_PREEMPT_RT is not set in {seen.config.source}"


def _mentions_a_model(config: KernelConfig) -> bool:
    options = (*_RT_OPTIONS, *_MODEL_OPTIONS, "PREEMPT_DYNAMIC")
    return any(f"CONFIG_{option}" in config.options for option in options)


def _model(seen: _Evidence, *, preempt_rt: bool | None) -> tuple[str | None, str]:
    if preempt_rt is None:
        return None, "unknown whether this kernel is PREEMPT_RT"
    if preempt_rt:
        return "PREEMPT_RT", _model_of_ordinary_threads(seen)
    if seen.dynamic:
        return _dynamic_model(seen)
    if seen.config is not None:
        return _configured_model(seen.config)
    # 6.13 brought PREEMPT_LAZY, and "PREEMPT" in uname then stands for either.
    if seen.flag == "PREEMPT" and is_release_since(seen.release, (6, 13)) is False:
        return "full", "uname -v says PREEMPT"
    return None, f"the configuration is unknown: {seen.search.why}"


def _model_of_ordinary_threads(seen: _Evidence) -> str:
    """Say what `lazy` and PREEMPT_DYNAMIC mean beside PREEMPT_RT: little."""
    model = None
    if seen.dynamic:
        model, how = _dynamic_model(seen)
    elif seen.config is not None and seen.config.is_on("PREEMPT_LAZY"):
        model, how = "lazy", f"CONFIG_PREEMPT_LAZY=y in {seen.config.source}"
    if model is None:
        return "the kernel is PREEMPT_RT"
    return (
        f"the kernel is PREEMPT_RT; ordinary threads preempt each other by the model "
        f"'{model}' ({how}), which real-time threads do not follow"
    )


def _dynamic_model(seen: _Evidence) -> tuple[str | None, str]:
    marked = _MARKED.search(seen.debug or "")
    if marked:
        return marked[1], f"{DEBUG_PREEMPT} marks ({marked[1]})"
    # Each change is logged, so the last line holds.
    logged = _LOGGED.findall(seen.log)
    if logged:
        return logged[-1], f"the kernel log says 'Dynamic Preempt: {logged[-1]}'"
    for value in reversed(boot_values(seen.cmdline, "preempt")):
        if _accepts(seen, value):
            return value, f"preempt={value} on the kernel command line"
    if seen.config is None:
        return None, (
            "PREEMPT_DYNAMIC, and its default is unknown: no preempt= on the command "
            f"line, and no configuration: {seen.search.why}"
        )
    model, how = _configured_model(seen.config)
    return model, f"the default of PREEMPT_DYNAMIC: {how}"


def _accepts(seen: _Evidence, value: str) -> bool:
    """Whether the kernel surely takes `preempt=value`; others it ignores."""
    lazy = seen.config.is_on("ARCH_HAS_PREEMPT_LAZY") if seen.config else None
    if value in {"full", "lazy"}:
        return value == "full" or lazy is True
    # 7.0 (commit 7dadeaa6e851) left full and lazy only, where lazy exists.
    dropped = lazy is not False and is_release_since(seen.release, (7, 0)) is not False
    realtime = seen.flag in _RT_FLAGS
    return value in {"none", "voluntary"} and not dropped and not realtime


def _configured_model(config: KernelConfig) -> tuple[str | None, str]:
    for option, model in _MODEL_OPTIONS.items():
        if config.is_on(option):
            return model, f"CONFIG_{option}=y in {config.source}"
    return None, f"{config.source} names no preemption model"


def _text(files: Mapping[str, Content], path: str) -> str | None:
    return text_of(files.get(path, Missing()))


# --- boot parameters that a kernel did not take, by its own messages ------------------

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
