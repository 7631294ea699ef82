"""Which mutants are drawn, and which tests have to notice them."""

from pathlib import Path

import pytest

from mutants import drawing
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


def of_text() -> list[Mutant]:
    return list(drawing.mutants_of(TEXT, file="a.py", area="audit"))


def changed(mutant: Mutant) -> list[str]:
    """Return the lines that a mutant has and the file has not."""
    lines = drawing.mutated(TEXT, mutant.number).splitlines()
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


def test_every_area_has_files_and_no_file_is_in_two() -> None:
    files = drawing.files_of(SOURCE)

    assert set(files.values()) == set(drawing.AREAS)


def test_mutants_can_be_those_of_a_few_files() -> None:
    files = drawing.files_of(SOURCE)

    assert drawing.fitting(files, ["*"]) == list(files)
    assert {files[f] for f in drawing.fitting(files, ["audit/*", "x"])} == {"audit"}
    assert drawing.fitting(files, ["*/unit.py"]) == ["audit/unit.py"]
    assert not drawing.fitting(files, ["unit.py"])


def test_the_same_seed_draws_the_same() -> None:
    every = [Mutant("audit", "a.py", i, (i, i)) for i in range(1000)]
    drawn = drawing.drawn(every, 100, seed=1)

    assert drawn == drawing.drawn(every, 100, seed=1)
    assert drawn != drawing.drawn(every, 100, seed=2)
    assert drawn == sorted(set(drawn), key=lambda mutant: mutant.number)
    assert drawing.drawn(every, 1001, seed=1) == every


def _result(number: int, outcome: str, *, diff: str = "-a\n+b") -> Result:
    return Result("a.py", number, 1, "audit", outcome, cpu_s=0.5, diff=diff)


def test_a_journal_goes_on_where_the_last_run_ended(tmp_path: Path) -> None:
    path, asked = tmp_path / "journal", {"seed": 1}
    first = Journal.opened(path, asked)
    first.add(_result(0, KILLED))
    first.add(_result(1, SURVIVED))
    with path.open("a") as file:
        file.write('{"file": "a.py", "num')  # the power went

    again = Journal.opened(path, asked)
    again.add(_result(2, LOOPED))

    assert [one.number for one in again.results] == [0, 1, 2]
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
