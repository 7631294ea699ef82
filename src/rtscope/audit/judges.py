"""
How a check is answered. A judge takes the row and the scene and gives an answer.

The rows of `checks/*.toml` name one. Most checks are about the configuration or the
value of a file and need the first two only.
"""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from rtscope.audit.model import (
    Answer,
    CheckKind,
    Evidence,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.audit.scene import Scene
from rtscope.kernel.image import build_id_in
from rtscope.machine.kernelconfig import KernelConfig
from rtscope.machine.kernelidentity import BANNER

Judge = Callable[[CheckKind, Scene], Answer]

NAMES_SHOWN = 6


def config(kind: CheckKind, scene: Scene) -> Answer:
    """
    Judge by the kernel's configuration.

    Keys: `on` (must be y), `off` (must not be set), `is` (option = value), `needs`
    (options without which the check means nothing).
    """
    found = scene.config
    if found is None:
        return unknown(f"no configuration: {scene.kernel.config_source}")
    for name in kind.args.get("needs", ()):
        if _value(found, name) == "n":
            return not_applicable(f"{name} is not set")
    wrong, right, unseen = _compare(found, _wanted(kind))
    if wrong:
        return failed(_listed(wrong), *_lines(found, wrong))
    if unseen:
        return unknown(
            f"{found.source} is not a whole configuration and does not mention "
            f"{_listed(unseen)}"
        )
    return passed(_listed(right), *_lines(found, right))


def value(kind: CheckKind, scene: Scene) -> Answer:
    """
    Judge by what files say: each that is there must have a good value.

    Keys: `good` (values, or patterns of the shell), `bad` (instead of `good`), `absent`
    (why it does not apply if there is no such file; without it that is unknown),
    `missing` (why that may be), `hidden_by` (the mode of kernel lockdown that takes
    the file away).
    """
    pattern = kind.paths[0]
    refused, found = scene.refusals(pattern), scene.matching(pattern)
    if not found and not refused:
        return absent(kind, scene)
    wrong = {path: text for path, text in found.items() if not _is_good(kind, text)}
    if wrong:
        return failed(_values(wrong), *_seen(wrong))
    if refused:
        return unknown("not all of it can be read", *refused)
    return passed(_values(found), *_seen(found))


LOCKDOWN = "/sys/kernel/security/lockdown"


def absent(kind: CheckKind, scene: Scene | None = None) -> Answer:
    """Answer for a machine that has none of the files of a check."""
    mode = (scene.text(LOCKDOWN) if scene else None) or ""
    if f"[{kind.args.get('hidden_by')}]" in mode:
        return unknown(
            f"kernel lockdown takes it away: {kind.paths[0]}", Evidence(LOCKDOWN, mode)
        )
    why = str(kind.args.get("absent", ""))
    if why:
        return not_applicable(why)
    maybe = kind.args.get("missing", "")
    paths = ", ".join(path for path in kind.paths if path != LOCKDOWN)
    return unknown(f"no such file: {paths}" + (f"; {maybe}" if maybe else ""))


def preempt_rt(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether this is PREEMPT_RT, by all witnesses."""
    kernel = scene.kernel
    if kernel.preempt_rt is None:
        return unknown(kernel.how)
    evidence = _witnesses(scene)
    return (passed if kernel.preempt_rt else failed)(kernel.how, *evidence)


def preemption_model(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge how a kernel that is not PREEMPT_RT preempts."""
    kernel = scene.kernel
    if kernel.preempt_rt:
        return not_applicable("the kernel is PREEMPT_RT")
    if kernel.preemption_model is None:
        return unknown(kernel.model_how)
    says = f"{kernel.preemption_model}: {kernel.model_how}"
    good = kernel.preemption_model in ("full", "lazy")
    return (passed if good else failed)(says, *_witnesses(scene))


def same_kernel(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether the running kernel is the one that was built."""
    wanted = scene.expected
    if wanted is None:
        return not_applicable("no kernel was named to compare it with")
    config_found = scene.config.digest if scene.config else None
    seen = {
        "build ID": (wanted.build_id, _build_id(scene)),
        "version": (wanted.banner, scene.text(BANNER)),
        "configuration": (wanted.config_digest, config_found),
    }
    known = {name: pair for name, pair in seen.items() if None not in pair}
    if not known:
        return unknown(
            f"neither {wanted.name} nor the machine tells a build ID, a version or a "
            "configuration to compare"
        )
    evidence = [
        Evidence(name, f"running {_short(got)}, built {_short(built)}")
        for name, (built, got) in known.items()
    ]
    other = [name for name, (built, got) in known.items() if built != got]
    if other:
        return failed(f"another {', '.join(other)} than {wanted.name}", *evidence)
    return passed(f"the {', the '.join(known)} of {wanted.name}", *evidence)


NOTES = "/sys/kernel/notes"


def _build_id(scene: Scene) -> str | None:
    notes = scene.content(NOTES)
    return build_id_in(notes) if isinstance(notes, bytes) else None


def _wanted(kind: CheckKind) -> Mapping[str, str]:
    on: Sequence[str] = kind.args.get("on", ())
    off: Sequence[str] = kind.args.get("off", ())
    values: Mapping[str, Any] = kind.args.get("is", {})
    wanted = dict.fromkeys(on, "y") | dict.fromkeys(off, "n")
    return wanted | {name: str(v) for name, v in values.items()}


def _compare(
    found: KernelConfig, wanted: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    wrong: dict[str, str] = {}
    right: dict[str, str] = {}
    unseen: dict[str, str] = {}
    for name, want in wanted.items():
        got = _value(found, name)
        if got is None:
            unseen[name] = want
        else:
            (right if got == want else wrong)[name] = got
    return wrong, right, unseen


def _value(found: KernelConfig, name: str) -> str | None:
    """Return an option's value; what a whole configuration leaves out is not set."""
    return found.options.get(f"CONFIG_{name}", "n" if found.whole else None)


def _listed(options: Mapping[str, str]) -> str:
    words = [f"{name}={value}" for name, value in options.items()]
    more = len(words) - NAMES_SHOWN
    return ", ".join(words[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _lines(found: KernelConfig, options: Mapping[str, str]) -> list[Evidence]:
    return [
        Evidence(
            found.source,
            f"CONFIG_{name}={value}" if value != "n" else f"CONFIG_{name} is not set",
        )
        for name, value in options.items()
    ]


def _is_good(kind: CheckKind, text: str) -> bool:
    if "bad" in kind.args:
        return not any(fnmatchcase(text, bad) for bad in kind.args["bad"])
    return any(fnmatchcase(text, good) for good in kind.args["good"])


def _values(found: Mapping[str, str]) -> str:
    kinds = list(dict.fromkeys(found.values()))
    shown = ", ".join(text[:80] or "empty" for text in kinds[:NAMES_SHOWN])
    where = next(iter(found)) if len(found) == 1 else f"{len(found)} files"
    return f"{shown} in {where}"


def _seen(found: Mapping[str, str]) -> list[Evidence]:
    return [Evidence(path, text[:200]) for path, text in found.items()]


def _witnesses(scene: Scene) -> tuple[Evidence, ...]:
    kernel = scene.kernel
    told = [Evidence("uname -v", kernel.version)] if kernel.version else []
    config_ = kernel.config
    if config_ is not None:
        told += [
            Evidence(config_.source, f"{name}={value}")
            for name, value in config_.options.items()
            if name in MODELS and value == "y"
        ]
    return tuple(told)


MODELS = tuple(
    f"CONFIG_{name}"
    for name in (
        *("PREEMPT_RT", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_VOLUNTARY"),
        *("PREEMPT_NONE", "PREEMPT_DYNAMIC"),
    )
)


def _short(text: str | None) -> str:
    return (text or "")[:60]


JUDGES: Mapping[str, Judge] = {
    judge.__name__: judge
    for judge in (config, value, preempt_rt, preemption_model, same_kernel)
}
