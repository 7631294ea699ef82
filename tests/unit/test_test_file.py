"""Test files: every key read and checked, options in place of them, paths."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from rtscope.host.errors import UsageError
from rtscope.host.units import NS_PER_MS, NS_PER_S, NS_PER_US
from rtscope.verbs.test.file import (
    BudgetTable,
    ProgramTest,
    load_test,
    program_test_of,
    with_values,
    written,
)
from rtscope.verbs.test.options import KEYS, OPTION_OF

WHOLE = """
schema = 1
name = "control"
[program]
command = ["./control", "--rate", "1000"]
build = "make control"
root = "install"
files = { "etc/control.toml" = "conf/test.toml" }
packages = ["libfoo2"]
environment = { A = "B=C" }
stdin = "input.txt"
directory = "/tmp"
user = "1000:100"
[board]
board = ["pc", "jh7110"]
kernel = ["debian-6.12-rt", "./bzImage"]
seed = [1, 7]
cpus = "1"
append = "nohz_full=1 quiet"
lockfile = "test.lock"
qemu = "./qemu"
[load]
names = ["idle", "stress-ng:fork"]
[time]
warmup = "0s"
duration = "1500ms"
settle = "1s"
cycles = 1000
starts = 4
[budget]
response = "200us"
missed = 0
[thread."fast*"]
period = "1ms"
execution = "100us"
instructions = 100000
"""


def read(text: str) -> ProgramTest:
    return program_test_of(tomllib.loads(text), source="t.toml")


def test_every_key_is_read() -> None:
    test = read(WHOLE)

    assert test.command == ("./control", "--rate", "1000")
    assert test.build == ("make", "control")
    assert test.environment == {"A": "B=C"}
    assert test.boards == ("pc", "jh7110")
    assert test.seeds == (1, 7)
    assert test.cpus == (1,)
    assert test.append == ("nohz_full=1", "quiet")
    assert (test.warmup_ns, test.duration_ns) == (0, 1500 * NS_PER_MS)
    assert test.budget == BudgetTable(response_ns=200 * NS_PER_US, missed=0)
    assert test.threads["fast*"].instructions == 100_000


def test_cycles_take_as_long_as_the_longest_period_says() -> None:
    assert read(WHOLE).longest_ns == 1002 * NS_PER_MS
    assert read("[time]\ncycles = 5").longest_ns == 2 * NS_PER_S


def test_what_is_written_is_read_again() -> None:
    values: dict[str, Any] = written(read(WHOLE))
    tables: dict[str, Any] = {}
    for key, value in values.items():
        table, _, name = key.rpartition(".")
        if table:
            tables.setdefault(table, {})[name] = value
        else:
            tables[name] = value

    assert program_test_of(tables, source="again") == read(WHOLE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema = 2", "t.toml: schema: 2"),
        ("[programm]", "no such table or key: 'programm'; did you mean 'program'"),
        ("[program]\ncomand = 1", "[program]: no such key: 'comand'; did you mean"),
        ("[budget]\nrespnse = '1us'", "[budget]: no such key: 'respnse'; did you mean"),
        ('[thread."a b"]\nmised = 3', "[thread.\"a b\"]: no such key: 'mised'"),
        ('[thread."a"]\nresponse = 3', '[thread."a"] response: 3: write a text'),
        ("[thread]\na = 3", '[thread."a"]: 3: write a table'),
        ("thread = 3", "[thread]: 3: write a table"),
        ('[thread."a\\u0007b"]\nmissed = 1', "[thread]: 'a\\x07b': write a name in"),
        ("program = []", "[program]: a list: write a table"),
        ("[program]\nfiles = 3", "[program] files: 3: write a table"),
        ("[program]\nfiles = {'../x' = 'a'}", "the path that the board has"),
        ("[program]\nfiles = {'/' = 'a'}", "the path that the board has"),
        ("[program]\nfiles = {a = 3}", "[program] files: 3 is no text"),
        ("[program]\nenvironment = {'1 A' = 'b'}", "no name of an environment"),
        ('[program]\nenvironment = {A = "\\u0000"}', "zero byte"),
        ("[program]\npackages = ['A b']", "'A b': write for example libfoo2"),
        ("[program]\nuser = 'A B'", "'A B': write for example nobody"),
        ("[program]\ncommand = []", "[program] command"),
        ("[program]\npolicy = 'fif'", "no such policy: 'fif'; did you mean 'fifo'"),
        ("[program]\npolicy = 'rr'", "rr needs a priority: add t.toml: [program] pri"),
        ("[program]\npriority = 9", "[program] priority: 9 is of no policy: add"),
        ("[program]\npriority = 100", "[program] priority: 100: write 1 to 99"),
        (
            "[program]\ncommand = ['./a', '{B}']\nvalues = {A = '1'}",
            "[program] values: A: neither the command nor a variable of its "
            "environment has {A}",
        ),
        (
            "[program]\ncommand = ['./a']\n[search.vary]\nA = '0..9'",
            "[search] vary: A: neither the command",
        ),
        ("[board]\nboard = 'pv'", "[board] board: no such board: 'pv'"),
        ("[board]\ncpus = '0-9'", "[board] cpus: 0-9: pc has the CPUs 0-1"),
        ("[board]\nseed = [1, 1]", "1 occurs twice"),
        ("[load]\nnames = 'cpuu'", "no such load: 'cpuu'; did you mean 'cpu'"),
        ("[load]\nnames = 'custom'", "[load] names: custom"),
        ("[time]\nduration = '2d'", "[time] duration: '2d': write 1ms to 1h"),
        ("[time]\nstarts = 0", "[time] starts: 0: write 1 to 1000"),
        ("[budget]\nmissed = 'x'", "[budget] missed: 'x': write a whole number"),
    ],
)
def test_a_mistake_is_named_with_its_key_and_remedy(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(text)

    assert said in str(refused.value)
    assert str(refused.value).startswith("t.toml: ")


def test_a_mistake_in_the_syntax_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text("schema = 1\n[program\n")

    with pytest.raises(UsageError, match=r"t\.toml: not valid TOML: .*line 2"):
        load_test(path)


def test_paths_begin_at_the_file_and_those_of_options_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests").mkdir()
    path = tmp_path / "tests" / "t.toml"
    path.write_text(WHOLE)
    monkeypatch.chdir(tmp_path)

    test = load_test(path)
    changed = with_values(
        test, {"program.stdin": "here.txt", "program.files": "etc/x=a,etc/y=b"}, {}
    )

    assert test.path(test.stdin or "") == tmp_path / "tests" / "input.txt"
    assert changed.path(changed.stdin or "") == tmp_path / "here.txt"
    assert changed.files == {"etc/x": f"{tmp_path}/a", "etc/y": f"{tmp_path}/b"}


def test_options_replace_keys_and_leave_the_others() -> None:
    test = with_values(
        read(WHOLE), {"budget.response": "5us", "board.seed": "3,4"}, OPTION_OF
    )

    assert test.budget == BudgetTable(response_ns=5 * NS_PER_US, missed=0)
    assert test.seeds == (3, 4)
    assert test.threads == read(WHOLE).threads
    assert with_values(test, {"board.cpus": "all"}, OPTION_OF).cpus == ()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("budget.response", "fast", "--response: 'fast': not a duration"),
        ("load.names", "x", "--load: no such load"),
        ("program.packages", "A", "--package: 'A'"),
        ("program.files", "x", "--files: 'x': write names and values"),
        ("board.cpus", "0-7", "--cpus: 0-7: pc has the CPUs 0-1"),
    ],
)
def test_a_mistake_in_an_option_is_named(key: str, value: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        with_values(ProgramTest(), {key: value}, OPTION_OF)

    assert said in str(refused.value)


def test_each_option_stands_for_a_key() -> None:
    assert len(set(KEYS.values())) == len(KEYS)
