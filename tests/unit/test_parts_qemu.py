"""One's own QEMU shows what it can before it may boot a board."""

import json
from pathlib import Path

import pytest

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.qemu import own_qemu
from rtscope.host.errors import UsageError

PLUGIN = Path("/plugins/rtscope-plugin.so")
HELP = "-plugin [file=]<file>[,<argname>=<argvalue>]"


def fake(
    folder: Path,
    *,
    version: tuple[int, int, int] = (10, 0, 2),
    arch: str = "x86_64",
    options: str = HELP,
    refusal: str | None = None,
) -> Path:
    """Write a program that answers as QEMU does, and may refuse the plugin."""
    major, minor, micro = version
    greeting: dict[str, object] = {
        "QMP": {
            "version": {
                "qemu": {"major": major, "minor": minor, "micro": micro},
                "package": "mine",
            }
        }
    }
    target: dict[str, object] = {"return": {"arch": arch}}
    lines: tuple[dict[str, object], ...] = (greeting, {"return": {}}, target)
    answers = "\n".join(map(json.dumps, lines))
    path = folder / "qemu"
    path.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = -help ]; then printf "usage\\n%s\\n" "{options}"; exit; fi\n'
        f"cat <<'END'\n{answers}\nEND\n"
    )
    if refusal is not None:
        path.write_text(
            path.read_text()
            + f'case "$*" in *-plugin*) printf "%s" "{refusal}" >&2; exit 1; esac\n'
        )
    path.chmod(0o755)
    return path


def refused(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        own_qemu(path, get_board("pc"), plugin=PLUGIN)
    return str(caught.value).removeprefix(f"--qemu {path}: ")


def test_a_qemu_that_can_is_known_by_its_version_and_digest(tmp_path: Path) -> None:
    path = fake(tmp_path)
    found = own_qemu(path, get_board("pc"), plugin=PLUGIN)

    assert (found.prefix, found.version) == ((str(path),), "10.0.2 (mine)")
    assert len(found.digest) == 64


def test_what_is_no_qemu_is_refused(tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\n")
    assert refused(tmp_path / "none").startswith("no such file; name the program qemu-")
    assert refused(tmp_path).startswith("a directory; name the program qemu-system-x86")
    assert refused(silent).startswith("does not start: cannot run")
    silent.chmod(0o755)
    assert refused(silent).startswith("no QEMU that emulates a whole machine; name")


def test_a_qemu_that_cannot_boot_the_board_is_refused_with_what_to_do(
    tmp_path: Path,
) -> None:
    said = refused(fake(tmp_path, version=(7, 2, 17)))
    assert said.startswith("QEMU 7.2.17 (mine) is too old: the plugin that bounds")
    assert "needs 10.0 or newer; name a newer one, or leave --qemu out" in said

    said = refused(fake(tmp_path, arch="riscv64"))
    assert said == (
        "it emulates riscv64, and the board pc is x86_64; name the program "
        "qemu-system-x86_64"
    )

    said = refused(fake(tmp_path, options="-no-plugins here"))
    assert said.startswith("it was built without plugins, and nothing else bounds")
    assert "--enable-plugins" in said


def test_a_qemu_that_does_not_export_what_the_plugin_replaces_is_refused(
    tmp_path: Path,
) -> None:
    said = refused(
        fake(
            tmp_path,
            refusal=f"qemu: Could not load plugin {PLUGIN}: {PLUGIN}: undefined "
            "symbol: bql_mutex_lock_func",
        )
    )
    assert said.startswith("it does not export bql_mutex_lock_func, which the plugin")
    assert said.endswith(
        "build it with --enable-plugins --enable-modules, or leave --qemu out for the "
        "pinned one"
    )


def test_another_refusal_of_the_plugin_is_told_in_qemus_words(tmp_path: Path) -> None:
    said = refused(fake(tmp_path, refusal="warning: x\nqemu: API version 4, not 3"))
    assert said == (
        "it refuses the plugin that bounds the CPUs' quantum: qemu: API version 4, not "
        "3; leave --qemu out for the pinned one"
    )

    said = refused(fake(tmp_path, refusal=""))
    assert "quantum: exit status 1; leave --qemu out" in said
