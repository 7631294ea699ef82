"""Which mutants are drawn, how they are named, and which tests have to notice them."""

from pathlib import Path

import pytest

from mutants import areas, comparison, drawing, jobs
from mutants.baseline import Baseline
from mutants.drawing import Mutant
from mutants.results import KILLED, LOOPED, SURVIVED, UNSURE, Journal, Result

SOURCE = Path(__file__).parents[2] / "src" / "rtscope"
TEXT = '''\
"""A module."""

LIMIT = 3


class A:
    @property
    def late(self) -> bool:
        """Whether it is."""
        if self.ns > LIMIT and (
            self.known
        ):
            return True
        return False


def twice(a: int, times: int = 2) -> int:
    return a * times
'''


def of_text(text: str = TEXT, *, file: str = "a.py") -> list[Mutant]:
    return list(drawing.mutants_of(text, file=file, area="loose"))


def changed(mutant: Mutant) -> list[str]:
    """Return the lines that a mutant has and the file has not."""
    lines = drawing.mutated(TEXT, mutant).splitlines()
    return [line.strip() for line in lines if line not in TEXT.splitlines()]


def test_constants_of_modules_and_properties_have_mutants_docstrings_none() -> None:
    found = [line for mutant in of_text() for line in changed(mutant)]

    assert "LIMIT = 4" in found
    assert "if self.ns >= LIMIT and (" in found
    assert "return a / times" in found
    assert not any('"""' in line for line in found)


def test_a_mutant_is_noticed_by_tests_that_execute_its_statement() -> None:
    lines = {
        line: drawing.lines_to_run(TEXT, mutant)
        for mutant in of_text()
        for line in changed(mutant)
    }

    assert lines["LIMIT = 4"] == set()  # executed by the import alone
    assert lines["if self.ns >= LIMIT and ("] == {10, 11, 12}
    assert lines["return False"] == {13}
    assert lines["def twice(a: int, times: int = 3) -> int:"] == {18}


def test_a_mutant_is_named_by_its_module_function_and_change() -> None:
    names = [mutant.name for mutant in of_text()]
    in_package = [mutant.name for mutant in of_text(file="verbs/audit/__init__.py")]

    assert "a: <module>: LIMIT = {3 -> 4} #1" in names
    assert "a: A.late: if self.ns {> -> >=} LIMIT and ( #1" in names
    assert "a: twice: return a {* -> /} times #1" in names
    assert "audit: twice: return a {* -> /} times #1" in in_package
    assert len(set(names)) == len(names)


def test_equal_changes_of_a_function_are_numbered() -> None:
    text = "def both(a: int) -> None:\n    print(a, 1)\n    print(a, 1)\n"
    ones = [m for m in of_text(text) if "print(a, {1) -> 2)}" in m.name]

    assert [mutant.name[-2:] for mutant in ones] == ["#1", "#2"]
    assert [mutant.lines[0] for mutant in ones] == [2, 3]


def test_a_mutant_keeps_its_name_when_its_file_moves_and_lines_shift() -> None:
    later = TEXT.replace("LIMIT = 3", "OTHER = 'x'\n\nLIMIT = 3")
    later = later.replace("        if self", "        # A comment.\n        if self")
    before = {mutant.name: mutant for mutant in of_text()}
    after = {m.name: m for m in of_text(later, file="verbs/run/a.py")}

    assert before.keys() < after.keys()
    assert not any(before[name].lines == after[name].lines for name in before)


CASES = """\
def f(a: int) -> int:
    match a:
        case 1:
            return 2
        case _:
            return g(a,
                     (3))
"""


def test_each_mutant_is_code_of_its_own() -> None:
    changed = [drawing.mutated(CASES, mutant) for mutant in of_text(CASES)]

    for code in changed:
        compile(code, "a.py", "exec")
    assert len({CASES, *changed}) == len(changed) + 1
    assert any("case 1" not in code for code in changed)
    assert any("return g(a,\n                     (4))" in code for code in changed)


def _tree(source: Path, monkeypatch: pytest.MonkeyPatch, *files: str) -> Path:
    for file in files:
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        (source / file).touch()
    table = {"words": ("words*.py",), "loose": ("*.py",), "b": ("b/**/*.py",)}
    monkeypatch.setattr(areas, "AREAS", table)
    return source


def test_every_file_of_this_tree_has_an_area_and_every_area_a_file() -> None:
    assert set(areas.files_of(SOURCE).values()) == set(areas.AREAS)


def test_the_first_area_with_a_pattern_for_a_file_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _tree(tmp_path, monkeypatch, "words.py", "a.py", "b/c/d.py")
    wanted = {"words.py": "words", "a.py": "loose", "b/c/d.py": "b"}

    assert areas.files_of(source) == wanted


def test_a_file_without_an_area_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _tree(tmp_path, monkeypatch, "words.py", "a.py", "b/c/d.py", "new/e.py")

    with pytest.raises(SystemExit, match=r"^files without an area: new/e\.py$"):
        areas.files_of(source)


def test_an_area_without_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _tree(tmp_path, monkeypatch, "words.py", "a.py")

    with pytest.raises(SystemExit, match=r"^areas without a file: b$"):
        areas.files_of(source)


def test_an_area_without_a_drawn_mutant_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"^areas without a drawn mutant: b$"):
        areas.quotas({"a": 100, "b": 0}, 50)
    with pytest.raises(SystemExit, match=r"^areas without a drawn mutant: a, b$"):
        areas.quotas({"a": 100, "b": 2}, 1)


def test_each_area_has_its_share_but_no_fewer_than_forty() -> None:
    sizes = {"a": 30_000, "b": 10_000, "c": 50, "d": 7}

    assert areas.quotas(sizes, 447) == {"a": 300, "b": 100, "c": 40, "d": 7}
    assert areas.quotas(sizes, 8) == {"a": 2, "b": 2, "c": 2, "d": 2}
    assert areas.quotas(sizes, 10**6) == sizes


def test_mutants_can_be_those_of_a_few_files() -> None:
    files = areas.files_of(SOURCE)

    assert drawing.fitting(files, ["*"]) == list(files)
    assert {files[f] for f in drawing.fitting(files, ["contract/*", "x"])} == {
        "contract"
    }
    assert drawing.fitting(files, ["*/lines.py"]) == ["contract/lines.py"]
    assert not drawing.fitting(files, ["lines.py"])


def _mutant(name: str, *, file: str = "a.py") -> Mutant:
    return Mutant(name, "loose", file, (1, 1), (0, 0), "")


def test_the_same_seed_draws_the_same_wherever_the_files_are() -> None:
    every = [_mutant(f"a: f: {i}") for i in range(1000)]
    moved = [_mutant(f"a: f: {i}", file="b/a.py") for i in reversed(range(1000))]
    names = [one.name for one in drawing.drawn(every, 100, seed=1)]

    assert len(set(names)) == 100
    assert names == [one.name for one in drawing.drawn(moved, 100, seed=1)]
    assert names != [one.name for one in drawing.drawn(every, 100, seed=2)]
    assert names == [one.name for one in drawing.drawn(every, 1001, seed=1)][:100]


def test_a_name_that_two_mutants_have_is_not_drawn() -> None:
    every = [_mutant("a: f: x"), _mutant("a: f: x", file="b/a.py"), _mutant("a: g: x")]

    assert drawing.unambiguous(every) == [every[2]]


def _result(
    number: int, outcome: str, *, diff: str = "-a\n+b", by: str = "", was: str = ""
) -> Result:
    name = f"a: f: {number}"
    return Result(name, "a.py", 1, "loose", outcome, 0.5, by, diff, was=was)


def test_a_journal_goes_on_where_the_last_run_ended(tmp_path: Path) -> None:
    path, asked = tmp_path / "journal", {"seed": 1}
    first = Journal.opened(path, asked)
    first.add(_result(0, KILLED))
    first.add(_result(1, SURVIVED))
    with path.open("a") as file:
        file.write('{"name": "a.py", "fi')  # the power went

    again = Journal.opened(path, asked)
    again.add(_result(2, LOOPED))

    assert [one.name[-1] for one in again.results] == ["0", "1", "2"]
    assert Journal.read(path).results == again.results


def test_a_journal_of_another_commit_is_no_answer(tmp_path: Path) -> None:
    Journal.opened(tmp_path / "journal", {"commit": "1"})

    with pytest.raises(SystemExit, match=r"'commit': '1'.*'commit': '2'"):
        Journal.opened(tmp_path / "journal", {"commit": "2"})


def test_an_unsure_mutant_is_not_dead_and_unchanged_code_is_no_mutant() -> None:
    journal = Journal({})
    for number, outcome in enumerate((KILLED, LOOPED, SURVIVED, UNSURE)):
        journal.add(_result(number, outcome))
    journal.add(_result(0, KILLED, diff=""))

    assert journal.share == 0.5
    report = list(journal.told())
    assert ["all", "4", "1", "1", "1", "1", "50.0%"] in map(str.split, report)
    assert any("unchanged code failed 1 of 1 times" in line for line in report)


def test_the_tests_of_a_mutant_end_when_they_take_too_long() -> None:
    seconds = {f"t.py::test[{i}]": float(i) for i in range(8)}
    known = Baseline(seconds, tests={"a.py": {0: set(seconds)}})
    slow = Baseline({"t.py::test": 100.0}, tests={"a.py": {0: {"t.py::test"}}})
    mutant = next(m for m in of_text() if "LIMIT = {3" in m.name)
    users = jobs.importers({"a.py": TEXT})

    job = jobs.job_of(mutant, TEXT, known, users)
    ran = [test for group in job.groups for test in group]
    assert sum(seconds[test] for test in ran) <= jobs.MOST_S
    assert sorted(ran) == sorted(seconds)[: len(ran)]
    assert job.capped
    alone = jobs.job_of(mutant, TEXT, slow, users)
    assert alone.groups == (("t.py::test",),)  # one test always runs
    assert not alone.capped


def test_a_mutant_of_an_earlier_tree_is_known_by_its_name() -> None:
    before = [_result(i, KILLED) for i in range(4)]
    now = [
        _mutant("a: f: 0", file="verbs/run/a.py"),
        _mutant("b: f: 1", file="verbs/b.py"),
        _mutant("b: f: 2"),
        _mutant("c: f: 2"),
    ]
    pairs, gone = comparison.matched(before, now)

    assert pairs == [(before[0], now[0]), (before[1], now[1])]
    assert gone == before[2:]  # one that could be two, and one that is no more


def test_of_two_mutants_of_a_name_the_one_in_the_same_folder_is_meant() -> None:
    before = Result("model: f: 1", "sweep/model.py", 1, "sweep", KILLED, 0.5)
    now = [
        _mutant("model: f: 1", file=f"verbs/{verb}/model.py")
        for verb in ("bisect", "sweep", "app")
    ]

    assert comparison.matched([before], now)[0] == [(before, now[1])]
    assert comparison.matched([before], [now[0], now[2]])[1] == [before]


def test_the_test_that_killed_a_mutant_runs_first_wherever_it_is_now() -> None:
    killer, other = "tests/verbs/test_new.py::test_late[b c]", "t.py::test_early"
    seconds = {other: 0.1, killer: 9.0, "t.py::test_late_too": 0.2}
    known = Baseline(seconds, tests={"a.py": {18: {other}, 0: {other}}})
    mutant = next(m for m in of_text() if "{* -> /}" in m.name)
    before = _result(0, KILLED, by="tests/unit/test_old.py::test_late[b c]")
    job = jobs.job_of(mutant, TEXT, known, {}, before=before)

    assert job.groups == ((killer,), (other,))
    assert job.was == before.name
    assert comparison.killers("tests/unit/test_old.py", seconds) == []


def test_of_tests_of_one_name_that_with_the_same_parameters_runs_first() -> None:
    tests = ["a.py::test_late[1]", "b.py::test_late[2]", "c.py::test_later[2]"]

    assert comparison.killers("old.py::test_late[2]", tests) == [tests[1], tests[0]]
    assert comparison.killers("old.py::test_late[3]", tests) == tests[:2]


def test_a_mutant_that_was_killed_and_lives_now_is_listed() -> None:
    before, now = Journal({}), Journal({"gone": ["a: f: 3"], "new": ["2 of g"]})
    outcomes = (KILLED, LOOPED, SURVIVED, KILLED, KILLED, KILLED)
    for number, outcome in enumerate(outcomes):
        before.add(_result(number, outcome, by="t.py::test"))
    for number, outcome in ((0, KILLED), (1, KILLED), (4, SURVIVED)):
        now.add(_result(number + 10, outcome, was=f"a: f: {number}"))

    report = list(comparison.told(before, now))
    assert [one.name for one in comparison.revived(before, now)] == ["a: f: 4"]
    assert "killed before and killed now: 2" in report
    at = report.index("killed before and alive now: 1")
    assert report[at + 1].startswith("  a: f: 4\n")
    assert report[report.index("gone: 1") + 1] == "  a: f: 3"
    assert "new: 2 in 1 functions" in report
    assert "killed before and not tried yet: 1" in report


def test_mutants_of_one_tree_alone_are_counted_by_function() -> None:
    names = ["a: f: x #1", "a: f: x #2", "a: g: y #1", "a: h: z #1"]
    later = ["moved: f: x #1", "moved: h: z #1", "moved: i: z #1"]

    assert comparison.differences(names, later) == {
        "gone of all": ["1 of f", "1 of g"],
        "new": ["1 of i"],
    }
