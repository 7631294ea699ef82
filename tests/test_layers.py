"""The architecture, as a test: who may import whom inside the package."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "rtscope"

# part -> parts it may import; a part is a module or a folder directly in rtscope/
MAY_IMPORT = {
    "__init__": set(),
    "errors": set(),
    "units": {"errors"},
    "cpulist": {"errors"},
    "reading": set(),
    "filereader": {"reading", "errors"},
    "process": {"errors"},
    "newfile": {"errors"},
    "contract": {"errors"},
    "tasks": {"errors", "contract", "cpulist", "reading"},
    "trace": {"errors"},
    "ftrace": {"errors"},
    "symbols": {"errors"},
    "steps": {"symbols", "trace"},
    "tracedrun": {"aroundwords", "besiderecord", "explain", "ftrace", "record"},
    "aroundwords": {"contract", "units"},
    "explain": {"ftrace", "symbols", "trace", "units"},
    "caveats": set(),
    "record": {"errors", "contract", "caveats"},
    "klog": {"caveats", "contract"},
    "loads": {"errors", "cpulist"},
    "campaign": {"errors", "units", "cpulist", "loads"},
    "resultdir": {"errors", "record"},
    "besiderecord": {"caveats", "errors", "record", "resultdir"},
    "observe": {"errors", "contract", "target", "tracedat"},
    "tracedat": {"contract", "errors"},
    "tracecost": {"contract", "errors", "record"},
    "loadproof": {"caveats", "contract", "loads", "record"},
    "room": {
        "errors",
        "contract",
        "cpulist",
        "facts",
        "loads",
        "reading",
        "record",
        "target",
    },
    "assemble": {
        "__init__",
        "errors",
        "campaign",
        "caveats",
        "contract",
        "facts",
        "klog",
        "loadproof",
        "loads",
        "measureargs",
        "observe",
        "record",
    },
    "measureargs": {"campaign", "cpulist", "record"},
    "plan": {"errors", "campaign", "loads", "record", "cpulist"},
    "kernel": {"errors", "newfile", "process", "reading"},
    "audit": {"contract", "cpulist", "errors", "filereader", "kernel", "reading"},
    "facts": {"errors", "reading", "record", "kernel", "cpulist", "caveats"},
    "target": {"errors", "reading", "filereader", "process", "contract"},
    "tuning": {"errors", "audit", "contract", "target"},
    "runaudit": {"__init__", "audit", "caveats", "reading"},
    "runtuning": {"audit", "campaign", "errors", "target", "tuning"},
    "published": {"errors", "units"},
    "board": {"errors", "newfile", "process", "units", "kernel"},
    "explained": {"errors", "record"},
    "stats": {
        "errors",
        "units",
        "contract",
        "record",
        "caveats",
        "cpulist",
        "tracecost",
    },
    "report": {
        "__init__",
        "audit",
        "errors",
        "explain",
        "explained",
        "units",
        "caveats",
        "contract",
        "kernel",
        "published",
        "record",
        "stats",
        "tasks",
    },
}
EDGES = {"execute", "virtual", "cli", "__main__"}
EVERYTHING = {*MAY_IMPORT, *EDGES}


def part_of(path: Path) -> str:
    return path.relative_to(SRC).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: absolute imports only"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize(
    "path", sorted(SRC.rglob("*.py")), ids=lambda p: str(p.relative_to(SRC))
)
def test_imports_follow_the_layers(path: Path) -> None:
    part = part_of(path)
    used = {name.split(".")[1] for name in imports(path) if name.startswith("rtscope.")}
    used = {"__init__" if name == "__version__" else name for name in used}

    if part in ("execute", "virtual"):
        allowed = EVERYTHING - {"cli", "report"}
    elif part in EDGES:
        allowed = EVERYTHING
    else:
        allowed = MAY_IMPORT[part]
    assert used - {part} <= allowed
