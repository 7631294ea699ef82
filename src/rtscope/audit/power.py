"""Judges of frequency, idle states, heat, shared cores and shared caches."""

from collections.abc import Mapping

from rtscope.audit.cpus import NOT_SET_APART, cpu_of, listed, set_apart
from rtscope.audit.devices import DMA_LATENCY, is_asked
from rtscope.audit.judges import absent
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
from rtscope.audit.surroundings import of_guest
from rtscope.cpulist import format_cpulist

POLICIES = "/sys/devices/system/cpu/cpufreq/policy*"
NO_CPUFREQ = "this machine has no CPU frequency scaling"
CURRENT = f"{POLICIES}/scaling_cur_freq"

IDLE = "/sys/devices/system/cpu/cpu*/cpuidle/state*"
RESUME_LATENCY = "power/pm_qos_resume_latency_us"


def fixed_frequency(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether each policy has one frequency; what was seen to vary fails."""
    lowest = scene.matching(f"{POLICIES}/scaling_min_freq")
    if not lowest:
        return not_applicable(NO_CPUFREQ)
    moved = _moved(scene)
    if moved:
        return failed(f"it changed within the window: {moved[0].what}", *moved)
    ranges, unpaired = {}, []
    for path, low in lowest.items():
        high = scene.text(path.replace("scaling_min", "scaling_max"))
        if high is None:
            unpaired.append(path)
        elif high != low:
            ranges[path] = f"{low} to {high} kHz"
    if ranges:
        says = f"{len(ranges)} of {len(lowest)} may vary: {next(iter(ranges.values()))}"
        return failed(says, *_evidence(ranges))
    if unpaired:
        return unknown("no highest frequency", Evidence(unpaired[0], "no partner"))
    return passed(f"{next(iter(lowest.values()))} kHz", *_evidence(lowest))


def _moved(scene: Scene) -> list[Evidence]:
    before, after = scene.observed.before, scene.observed.after
    return [
        Evidence(path, f"{text.strip()} kHz, then {after[path].strip()}")
        for path, text in before.items()
        if path.endswith("/scaling_cur_freq")
        and path in after
        and after[path].strip() != text.strip()
    ]


def turbo(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether frequencies beyond the nominal one are off."""
    no_turbo, boost = kind.paths
    for path, off in ((no_turbo, "1"), (boost, "0")):
        text = scene.text(path)
        if text is not None:
            evidence = Evidence(path, text)
            return (passed if text == off else failed)(
                "off" if text == off else "on", evidence
            )
    refused = [e for path in kind.paths for e in scene.refusals(path)]
    return unknown("it cannot be read", *refused) if refused else absent(kind)


def idle_states(kind: CheckKind, scene: Scene) -> Answer:
    """
    Judge whether a CPU may fall asleep so deep that waking takes long.

    Key: `latency_us`, the exit latency that is still good.
    """
    limit = int(kind.args["latency_us"])
    latencies = scene.matching(f"{IDLE}/latency")
    if not latencies:
        refused = scene.refusals(f"{IDLE}/latency")
        return unknown("it cannot be read", *refused) if refused else absent(kind)
    wanted = set_apart(scene)
    deep, odd = {}, []
    for path, text in latencies.items():
        if wanted is not None and cpu_of(path) not in wanted:
            continue
        state = path.removesuffix("/latency")
        if not text.isdecimal():
            odd.append(Evidence(path, text[:80]))
        elif int(text) > limit and _may_be_chosen(scene, state, limit):
            name = scene.text(f"{state}/name") or "?"
            deep[state] = f"{name}, {text} us to wake"
    asked = scene.observed.dma_latency_us
    if deep and asked is not None and asked <= limit:
        told = Evidence(DMA_LATENCY, f"{asked} us{_by_whom(scene)}")
        return passed(f"none deeper than {asked} us as long as that is asked", told)
    if deep:
        says = f"{len(deep)} in use, such as {next(iter(deep.values()))}"
        return failed(says, *_evidence(deep))
    if odd:
        return unknown("a latency is no number", *odd)
    return passed(f"none above {limit} us is in use", *_evidence(latencies))


def _may_be_chosen(scene: Scene, state: str, limit: int) -> bool:
    if scene.text(f"{state}/disable") == "1":
        return False
    # Of this CPU alone: 0 asks for nothing, n/a for no delay at all (sysfs-power).
    asked = scene.text(f"{state.partition('/cpuidle/')[0]}/{RESUME_LATENCY}") or "0"
    return asked != "n/a" and (not asked.isdecimal() or not 0 < int(asked) <= limit)


def _by_whom(scene: Scene) -> str:
    names = sorted(set(scene.observed.dma_holders.values()))
    return f", asked by {', '.join(names[:4])}" if names else ""


def latency_request(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether some program keeps idle states short for all while it runs."""
    asked = scene.observed.dma_latency_us
    if asked is None and scene.config and not scene.config.is_on("CPU_IDLE"):
        return not_applicable("CPU_IDLE is not set: there are no idle states")
    if asked is None:
        return unknown(scene.observed.why_no_dma_latency)
    evidence = Evidence(DMA_LATENCY, f"{asked} us{_by_whom(scene)}")
    if is_asked(asked):
        return failed(evidence.what, evidence, *_holders(scene))
    return passed("nobody asks for it", evidence)


def _holders(scene: Scene) -> list[Evidence]:
    return _evidence(scene.observed.dma_holders)


def cooling(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether a processor is being slowed down because of heat."""
    types = {
        path: text
        for path, text in scene.matching(kind.paths[0]).items()
        if text == "Processor" or "cpufreq" in text
    }
    if not types:
        return absent(kind)
    states = {
        path: state
        for path in types
        if (state := scene.text(path.replace("/type", "/cur_state"))) is not None
    }
    hot = {path: state for path, state in states.items() if state != "0"}
    if hot:
        return failed(f"{len(hot)} of {len(types)} slow it down", *_evidence(hot))
    if len(states) < len(types):
        return unknown("not every state can be read")
    return passed("none slows it down", *_evidence(states))


def smt(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether two CPUs share a core; a guest cannot see it."""
    active = kind.paths[0]
    text = scene.text(active)
    if text is None:
        refused = scene.refusals(active)
        return unknown("it cannot be read", *refused) if refused else absent(kind)
    evidence = Evidence(active, text)
    if text == "1":
        return failed("two CPUs share a core", evidence)
    if text != "0":
        return unknown("neither 0 nor 1", evidence)
    if of_guest(scene):
        says = "a guest does not see which of the host's CPUs share a core"
        return not_applicable(says, evidence)
    return passed("no two CPUs share a core", evidence)


def private_cache(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether CPUs set apart share their second-level cache with others."""
    apart = set_apart(scene)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    levels = scene.matching("/sys/devices/system/cpu/cpu*/cache/index*/level")
    seen, shared = {}, {}
    for path, level in levels.items():
        others = path.replace("/level", "/shared_cpu_list")
        text = scene.text(others)
        if level != "2" or cpu_of(path) not in apart or text is None:
            continue
        seen[others] = text
        cpus = listed(text)
        if cpus is None:
            return unknown("no CPU list", Evidence(others, text[:80]))
        if cpus - apart:
            shared[others] = f"with CPU {format_cpulist(cpus - apart)}"
    if shared:
        return failed(next(iter(shared.values())), *_evidence(shared))
    if not seen:
        return unknown("the second-level cache of these CPUs is not described")
    return passed("with nobody else", *_evidence(seen))


def _evidence(texts: Mapping[str, str]) -> list[Evidence]:
    return [Evidence(path, text[:200]) for path, text in list(texts.items())[:16]]


JUDGES = (
    *(fixed_frequency, turbo, idle_states, latency_request, cooling, smt),
    private_cache,
)
