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
    "process": {"errors"},
    "files": {"errors"},
    "contract": {"errors", "files"},
    "loads": {"errors", "cpulist"},
    "published": {"errors", "units"},
    "exectrace": {"errors", "files"},
    "ftrace": {"errors", "contract"},
    "machine": {"errors", "contract", "cpulist"},
    "caveats": {"contract", "cpulist", "machine"},
    "record": {"errors", "files", "contract", "caveats", "machine"},
    "formats": {
        *("__init__", "errors", "files", "units", "contract", "caveats", "machine"),
        "record",
    },
    "export": {"errors", "files", "units", "contract", "caveats", "record", "stats"},
    "kernel": {"errors", "files", "process", "machine"},
    "board": {"errors", "files", "process", "units", "kernel"},
    "campaign": {"errors", "units", "cpulist", "loads", "target"},
    "target": {"errors", "process", "contract", "machine"},
    "tasks": {"errors", "units", "contract", "cpulist", "machine", "target"},
    "app": {"errors", "units", "contract", "cpulist", "machine", "tasks", "stats"},
    "demo": {"errors", "units", "contract"},
    "audit": {"errors", "units", "contract", "cpulist", "machine", "kernel"},
    "tuning": {
        *("errors", "contract", "cpulist", "machine", "audit", "campaign", "target"),
    },
    "explain": {"contract", "exectrace", "ftrace", "machine", "record", "units"},
    "sweep": {
        *("errors", "files", "units", "cpulist", "campaign", "loads", "machine"),
        *("record", "caveats", "stats"),
    },
    "stats": {
        *("errors", "units", "contract", "record", "caveats", "cpulist", "machine"),
    },
    "report": {
        *("__init__", "errors", "files", "units", "contract", "caveats", "record"),
        *("machine", "stats", "explain", "published", "audit", "tuning", "tasks"),
        "sweep",
        "bisect",
        "app",
        "demo",
    },
}
EDGES = {"measure", "virtual", "cluster", "bisect", "analysis", "cli", "__main__"}
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

    if part == "measure":
        allowed = EVERYTHING - {
            "cli",
            "report",
            "virtual",
            "cluster",
            "bisect",
            "analysis",
        }
    elif part == "virtual":
        allowed = EVERYTHING - {"cli", "report", "cluster", "bisect", "analysis"}
    elif part == "cluster":
        allowed = EVERYTHING - {"cli", "report", "analysis"}
    elif part == "bisect":
        allowed = EVERYTHING - {"cli", "report", "analysis", "cluster"}
    elif part == "analysis":
        allowed = EVERYTHING - {"cli", "measure"}
    elif part in EDGES:
        allowed = EVERYTHING
    else:
        allowed = MAY_IMPORT[part]
    assert used - {part} <= allowed
