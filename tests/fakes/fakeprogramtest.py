"""`rtscope test` of a program whose source says how long it works: no board boots."""

import itertools
import json
import sys
from pathlib import Path

LIMIT_NS = 40_000


def main(words: list[str]) -> int:
    """Answer as `rtscope test FILE --json` does, by the work in control.c."""
    options = dict(itertools.pairwise(words))
    text = Path("control.c").read_text()
    asked = Path(words[1]).read_text()
    if "broken" in text:
        sys.stderr.write("rtscope: the build command ended with status 2: make\n")
        return 3
    if "crash" in text:
        sys.stderr.write("a bug\n")
        return 70
    worst_ns = int(text.split()[1])
    limit_ns = int(asked.split()[1])
    if "--save" in options:
        Path(options["--save"]).write_text(str(worst_ns))
    before = options.get("--identical-to") or options.get("--no-worse-than")
    then = int(Path(before).read_text()) if before else worst_ns
    is_broken = worst_ns > limit_ns or worst_ns > then
    row = {
        "answer": f"worst response {worst_ns} ns",
        "budgets": [
            {
                "run": "pc",
                "thread": "control",
                "budget": "response",
                "unit": "ns",
                "limit": limit_ns,
                "value": worst_ns,
                "outcome": "broken" if worst_ns > limit_ns else "kept",
            }
        ],
        "threads": [{"run": "pc", "thread": "control", "response": worst_ns}],
        "differences": [{"thread": "control", "says": "cycle 0 is the first"}],
        "cause": "its own code" if "--explain" in words else None,
    }
    print(json.dumps(row))
    return int(is_broken)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
