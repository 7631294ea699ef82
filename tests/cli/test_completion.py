"""The completion of shells and the manual, against the command line itself."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import commandline
from fakes.commandline import Rtscope
from rtscope.boards.catalogue import board_names
from rtscope.cli.app import tables

ROOT = Path(__file__).parents[2]
COMPLETIONS = ROOT / "src" / "rtscope" / "cli" / "completions"
MANUAL = ROOT / "docs" / "man"


def boards(start: str) -> str:
    return " ".join(name for name in board_names() if name.startswith(start))


TYPED = {
    "rtscope ta": "tasks",
    "rtscope board b": "build",
    "rtscope board build pc r": boards("r"),
    "rtscope --v": "--version",
    "rtscope run --lo": "--load --lockfile",
    "rtscope run --load idle,m": "idle,memory",
    "rtscope run -l n": "network",
    "rtscope run --load=c": "cpu custom",
    "rtscope run --load=idle,n": "idle,network",
    "rtscope run --json --kernel debian-6.12-": "debian-6.12-rt",
    "rtscope run --policy d": "deadline",
    # bash cuts words at a colon and replaces what follows it.
    "rtscope run -t virtual:p": boards("p"),
    "rtscope tasks --target v": "",
    "rtscope run --duration ": "",
    "rtscope report --format m": "markdown",
    "rtscope report results --html pag": "page.html",
    "rtscope run --storage-dir ": "folder",
    "rtscope run ": "folder page.html",
    "rtscope completion z": "zsh",
    "rtscope nonsense --f": "",
}


def test_bash_completes_verbs_options_and_values(tmp_path: Path) -> None:
    (tmp_path / "page.html").touch()
    (tmp_path / "folder").mkdir()
    script = [f"source {shlex.quote(str(COMPLETIONS / 'rtscope.bash'))}"]
    for line in TYPED:
        script += [
            f"COMP_LINE={shlex.quote(line)} COMPREPLY=()",
            f"COMP_POINT={len(line)}",
            '_rtscope; echo "${COMPREPLY[*]}"',
        ]
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stderr == ""
    assert dict(zip(TYPED, done.stdout.split("\n"), strict=False)) == TYPED


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_prints_what_its_shell_reads(rtscope: Rtscope, shell: str) -> None:
    said = rtscope("completion", shell)
    files = {"bash": "rtscope.bash", "zsh": "_rtscope", "fish": "rtscope.fish"}

    assert (said.status, said.err) == (0, "")
    assert said.out == (COMPLETIONS / files[shell]).read_text("utf-8")


def test_another_shell_is_refused_with_those_there_are(rtscope: Rtscope) -> None:
    said = rtscope("completion", "tcsh")

    assert said.status == 2
    assert all(shell in said.err for shell in ("bash", "zsh", "fish"))


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_has_nothing_to_say_about_the_manual() -> None:
    pages = sorted(map(str, MANUAL.glob("*.1")))
    argv = ["groff", "-man", "-ww", "-z", "-Tutf8", *pages]
    done = subprocess.run(argv, capture_output=True, text=True)

    assert pages
    assert (done.returncode, done.stderr) == (0, "")


def test_each_verb_has_a_page_of_the_manual_with_all_its_options() -> None:
    for verb in commandline.verbs():
        text = (MANUAL / f"rtscope-{'-'.join(verb.words)}.1").read_text("utf-8")
        written = text.replace("\\-", "-")
        for one in verb.options:
            names = ", ".join(f"\\fB{name}\\fR" for name in one.names)
            assert f".TP\n{names}" in written
    pages = {path.name for path in MANUAL.iterdir()}
    assert len(pages) == len(commandline.verbs()) + 1, "one of a verb that is gone"


@pytest.mark.parametrize("verb", commandline.verbs(), ids=lambda verb: verb.name)
def test_the_examples_of_a_verb_have_its_options(verb: commandline.Verb) -> None:
    known = {name for one in verb.options for name in one.names}
    if tables()["verbs"].get(verb.name, {}).get("passes_on"):
        return  # they are another program's
    for example in verb.examples:
        # what follows -- is a command of the user's
        words = shlex.split(example.partition(" > ")[0].partition(" -- ")[0])
        assert words[: len(verb.words) + 1] == ["rtscope", *verb.words]
        assert {word for word in words if word.startswith("-")} <= known


def test_closed_sets_have_their_values() -> None:
    options = {
        (verb.name, name): one
        for verb in commandline.verbs()
        for one in verb.options
        for name in one.names
    }
    assert options["run", "-l"].values[:2] == ("idle", "cpu")
    assert "virtual:pc" in options["run", "--target"].values
    assert "virtual:pc" not in options["tasks", "--target"].values
    assert "rt_throttling" in options["audit", "--apply"].values
    assert options["audit", "--fail-on"].values
    assert options["run", "--out"].places == commandline.FILES
    assert {*tables()["groups"]} == {*commandline.groups()}
