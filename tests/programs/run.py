"""
`rtscope app check` on programs that others wrote: `make programs`, or `ARGS=jackd`.

Each program is started, watched by rtscope and a witness at once, and stopped by its
process group. Its answer, what the witness saw and the verdicts lie in build/programs;
a run that was ended goes on with the programs that are not there. As root, on a machine
of one's own: packages are named where one is missing, never installed.
"""

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from programs.judge import judged, missed
from programs.witness import Witness, threads_of

HERE = Path(__file__).parent
RESULTS = Path("build/programs")
_SETTLE_S = 3.0
_PATIENCE_S = 180.0
"""For an answer: a program that spins at a real-time policy must not go on for long."""
_POLICIES = {"fifo": os.SCHED_FIFO, "rr": os.SCHED_RR}


def main() -> int:
    """Print a table; 1 if a finding is false. A missed offence is only listed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("programs", nargs="*", help="default: all")
    parser.add_argument("--again", action="store_true", help="forget earlier runs")
    parser.add_argument("--duration", default="8s", help="time to watch each")
    asked = parser.parse_args()
    programs = tomllib.loads((HERE / "programs.toml").read_text())
    if unknown := set(asked.programs) - programs.keys():
        parser.error(f"no program {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = asked.programs or list(programs)
    for name in names:
        file = RESULTS / f"{name}.json"
        if file.exists() and not asked.again:
            continue
        print(f"--- {name}: {programs[name]['command']}", flush=True)
        result = _checked(name, programs[name], asked.duration)
        file.write_text(json.dumps(result, indent=1) + "\n")
    results = {n: json.loads((RESULTS / f"{n}.json").read_text()) for n in names}
    print(*_table(results), sep="\n")
    findings = [f for one in results.values() for f in one.get("findings", ())]
    return int(any(one["right"] is False for one in findings))


def _checked(name: str, program: Mapping[str, Any], duration: str) -> dict[str, Any]:
    with contextlib.ExitStack() as stack:
        run = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for file in (HERE / "files").iterdir():
            text = file.read_text().replace("RUN", str(run))
            (run / file.name).write_text(text)
        told = program.get("env", {}).items()
        env = {**os.environ, "TMPDIR": str(run)}
        env |= {name: value.replace("RUN", str(run)) for name, value in told}
        commands = (*program.get("helpers", ()), program["command"])
        *before, argv = [_argv(one, run) for one in commands]
        missing = [one[0] for one in (*before, argv) if shutil.which(one[0]) is None]
        if missing:
            return {"skipped": f"{missing[0]} is not installed"}
        helpers = []
        for helper in before:
            helpers.append(stack.enter_context(_started(helper, env)))
            time.sleep(_SETTLE_S)
        process = stack.enter_context(_started(argv, env))
        time.sleep(_SETTLE_S)
        stack.callback(_end_strays, run)
        pid = _watched(process, run, program.get("check"))
        if pid is None:
            return {"skipped": f"it ended, with status {process.poll()}"}
        _set_policy(pid, program.get("chrt", ""))
        try:
            witness = Witness(pid)
        except RuntimeError as error:
            return {"skipped": str(error)}
        stack.callback(witness.kill)
        begun, used = time.monotonic(), os.times()
        words = ["app", "check", "--json", "--duration", duration, str(pid)]
        try:
            checked = subprocess.run(
                ["rtscope", *words],
                capture_output=True,
                text=True,
                check=False,
                timeout=_PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            return {"skipped": f"no answer in {_PATIENCE_S:.0f} s"}
        wall_s, now = time.monotonic() - begun, os.times()
        cpu_s = (
            now.children_user
            + now.children_system
            - used.children_user
            - used.children_system
        )
        try:
            seen = witness.end()
        except RuntimeError as error:
            return {"skipped": str(error)}
        alive = process.poll() is None
        if any(one.poll() for one in helpers):
            return {"skipped": "a helper ended, with an error"}
    if checked.returncode not in {0, 1}:
        return {"skipped": f"status {checked.returncode}: {checked.stderr[-500:]}"}
    answer = json.loads(checked.stdout)
    return {
        "name": name,
        "wall_s": round(wall_s, 1),
        "cpu_s": round(cpu_s, 1),
        "alive": alive,
        "threads": len(answer["threads"]),
        "findings": [asdict(one) for one in judged(answer, seen)],
        "offences": [asdict(one) for one in missed(answer, seen)],
        "answer": answer,
    }


def _argv(command: str, run: Path) -> list[str]:
    text = command.replace("FILES", str(run)).replace("RUN", str(run))
    return shlex.split(text)


@contextlib.contextmanager
def _started(
    argv: list[str], env: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        argv,
        env=env,
        cwd=env["TMPDIR"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    try:
        yield process
    finally:
        for sent in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=3)


def _watched(
    process: subprocess.Popen[bytes], run: Path, name: str | None
) -> int | None:
    """Return the process itself, or the youngest of its run that has the name."""
    if name is None:
        return process.pid if process.poll() is None else None
    found = []
    for pid in _of_run(run, process.pid):
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/comm").read_text().strip()
            if command.startswith(name[:15]):
                found.append(pid)
    return max(found, default=None)


def _of_run(run: Path, group: int | None = None) -> Iterator[int]:
    """Yield the processes of a group, and those with the environment of a run."""
    told = f"TMPDIR={run}".encode()
    for proc in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(proc.name)
            environment = (proc / "environ").read_bytes().split(b"\0")
            if os.getpgid(pid) == group or told in environment:
                yield pid


def _end_strays(run: Path) -> None:
    """End what left the group of the program."""
    for pid in _of_run(run):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _set_policy(pid: int, asked: str) -> None:
    if not asked:
        return
    policy, priority, name = asked.split(maxsplit=2)
    for tid, thread in threads_of(pid).items():
        if thread.name.startswith(name):
            os.sched_setscheduler(tid, _POLICIES[policy], os.sched_param(int(priority)))


def _table(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield (
        "| program | threads | findings | true | false | not told | offences seen "
        "| missed | CPU s |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    total: Counter[str] = Counter()
    for name, one in results.items():
        if "skipped" in one:
            yield f"| {name} | {one['skipped'].splitlines()[0][:90]} |"
            continue
        findings = Counter(str(f["right"]) for f in one["findings"])
        offences = Counter(str(f["right"]) for f in one["offences"])
        total.update({f"f{k}": n for k, n in findings.items()})
        total.update({f"o{k}": n for k, n in offences.items()})
        yield (
            f"| {name} | {one['threads']} | {len(one['findings'])} "
            f"| {findings['True']} | {findings['False']} | {findings['None']} "
            f"| {len(one['offences'])} | {offences['False']} | {one['cpu_s']} |"
        )
    yield ""
    told = total["fTrue"] + total["fFalse"]
    yield (
        f"{told + total['fNone']} findings, {told} of them told by the witness: "
        f"{total['fFalse']} false. {total['oTrue'] + total['oFalse']} offences seen by "
        f"the witness in judged threads: {total['oFalse']} missed."
    )
    for name, one in results.items():
        for kind, word in (("findings", "false"), ("offences", "missed")):
            for f in one.get(kind, ()):
                if f["right"] is False:
                    at = f"{name}, {f['thread']}: {f['finding']}"
                    yield f"* {at} {word}: {f['why'][:160]}"


if __name__ == "__main__":
    raise SystemExit(main())
