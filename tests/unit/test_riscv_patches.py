"""Our patches for Linux 6.1-rt are well-formed, as git and as a reviewer read them."""

import re
from email import message_from_string
from email.header import decode_header, make_header
from importlib import resources

import pytest

FOLDER = resources.files("rtscope.boards.kernels").joinpath("patches", "riscv-6.1-rt")
SERIES = FOLDER.joinpath("series").read_text("utf-8")
NAMES = [line for line in SERIES.splitlines() if not line.startswith("#")]

_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_STAT = re.compile(
    r"^ (\d+) files? changed"
    r"(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?$",
    re.M,
)


def _text(name: str) -> str:
    return FOLDER.joinpath(name).read_text("utf-8")


def _subject(name: str) -> str:
    raw = message_from_string(_text(name))["Subject"]
    return " ".join(str(make_header(decode_header(raw))).split())


def _message(name: str) -> str:
    body = message_from_string(_text(name)).get_payload()
    assert isinstance(body, str)
    return body.partition("\n---\n")[0]


def _count(name: str) -> tuple[int, int, int]:
    """Return files, lines added and lines removed; each hunk is as long as it says."""
    files = added = removed = old = new = 0
    for line in _text(name).partition("\n---\n")[2].splitlines():
        if old or new:
            assert line[:1] in ("+", "-", " ", ""), line
            plus, minus = line.startswith("+"), line.startswith("-")
            added, removed = added + plus, removed + minus
            old, new = old - (not plus), new - (not minus)
            assert old >= 0, line
            assert new >= 0, line
        elif hunk := _HUNK.match(line):
            old, new = (int(count or 1) for count in hunk.groups())
        else:
            files += line.startswith("diff --git ")
    assert (old, new) == (0, 0), f"{name}: the last hunk is cut off"
    return files, added, removed


def test_the_series_names_every_patch_once_and_in_order() -> None:
    there = sorted(
        entry.name for entry in FOLDER.iterdir() if entry.name.endswith(".patch")
    )

    assert there == NAMES
    assert [int(name[:4]) for name in NAMES] == list(range(1, len(NAMES) + 1))


def test_the_series_says_its_licence_and_what_it_applies_to() -> None:
    assert SERIES.startswith("# SPDX-License-Identifier: GPL-2.0-only\n")
    assert "\n# base: 6.1.176\n" in SERIES


@pytest.mark.parametrize("name", NAMES)
def test_a_patch_says_what_it_changes_why_and_who_signs_for_it(name: str) -> None:
    mail = message_from_string(_text(name))
    message = _message(name)
    why, _, signed = message.rpartition("\n\nSigned-off-by: ")

    assert re.fullmatch(r"\[PATCH\] (riscv|sched): [\w: ]*[A-Z].*[^.]", _subject(name))
    assert mail["From"] == signed.strip()
    assert len(why.split()) > 25
    assert [line for line in why.splitlines() if len(line) > 75] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_hunks_of_a_patch_add_up_to_its_summary(name: str) -> None:
    summary = _STAT.search(_text(name))

    assert summary is not None
    assert _count(name) == tuple(int(count or 0) for count in summary.groups())


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_called_after_its_subject(name: str) -> None:
    words = re.sub(r"[^A-Za-z0-9._]+", "-", _subject(name).removeprefix("[PATCH] "))

    assert words.startswith(name[5:].removesuffix(".patch").rstrip("-"))
