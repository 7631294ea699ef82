import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.measurements import record, thread
from rtscope.host.escape import all_printable, for_markdown, printable
from rtscope.record.caveats.catalogue import Caveat


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc", r"a\x0ab\x09c"),
        ("abc\u202edef", r"abc\u202edef"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("\x9bcsi", r"\x9bcsi"),
        ("\ud800", r"\ud800"),
        ("Grüße µs", "Grüße µs"),
    ],
)
def test_hidden_characters_become_visible_and_others_stay(
    hostile: str, shown: str
) -> None:
    assert printable(hostile) == shown


@given(st.text())
def test_printable_text_has_no_control_characters(text: str) -> None:
    categories = {unicodedata.category(character) for character in printable(text)}

    assert not {c for c in categories if c.startswith("C") or c in ("Zl", "Zp")}


def test_absurdly_long_text_is_cut_and_says_so() -> None:
    assert printable("x" * 10_000_000, limit=10) == "x" * 10 + "…"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("[x](http://y)", r"\[x\](http\://y)"),
        ("<script>", r"\<script\>"),
        ("- item", "&#45; item"),
        ("1. item", "&#49;. item"),
        ("1.5 ms: 6.12.43+deb13", "1.5 ms: 6.12.43+deb13"),
        ("+ item", "&#43; item"),
        ("# head", r"\# head"),
        ("plain", "plain"),
    ],
)
def test_text_does_not_act_as_markdown(text: str, escaped: str) -> None:
    assert for_markdown(text) == escaped


def test_every_text_in_a_record_is_made_printable_and_the_numbers_stay() -> None:
    hostile = "a\x1b[2Jb"
    run = record(
        [thread([4_000, 5_000])],
        hostile,
        facts={hostile: hostile},
        caveats=[Caveat("kernel_warning", hostile)],
    )
    safe = all_printable(run)

    assert "\x1b" not in repr(safe).replace("\\x1b", "")
    assert safe.run.load == r"a\x1b[2Jb"
    assert safe.facts_before[r"a\x1b[2Jb"].value == r"a\x1b[2Jb"
    assert safe.caveats[0].detail == r"a\x1b[2Jb"
    assert safe.result.threads is run.result.threads
    assert all_printable(safe) == safe
