"""A number that no result can have is refused with its line, in each text format."""

import re
from pathlib import Path

import pytest

from rtscope.host.errors import RecordError
from rtscope.record.foreign import read
from rtscope.record.foreign.source import Source

OUTPUTS = Path(__file__).parents[1] / "foreign"
LONGEST = "1" + "0" * 4_999

CYCLICTEST = """\
# Histogram
000003 000900\t000800
000005 000090\t000190
# Total: 000000990 000000990
# Min Latencies: 00003 00003
# Avg Latencies: 00003 00003
# Max Latencies: 00005 00005
# Histogram Overflows: 00000 00000
# Thread 0: 00012
"""
SUMMARY = "T: 0 ( 71) P:80 I:1000 C:   1000 Min:      3 Act:    8 Avg:    5 Max:  24\n"
VALUES = "".join(f"       0:{at:8d}:{at % 9 + 3:8d}\n" for at in range(9))
OSLAT = """\
            Core:\t 0 1
    Counter Freq:\t 2096 2096 (Mhz)
    001 (us):\t 70 80
    002 (us):\t 7 8
     Minimum:\t 1 1 (us)
     Maximum:\t 2 2 (us)
"""
TEXTS = {
    "a histogram": CYCLICTEST,
    "a summary": SUMMARY * 2,
    "values": VALUES,
    "oslat": OSLAT,
}


def _with(text: str, place: re.Match[str], number: str) -> str:
    return text[: place.start()] + number + text[place.end() :]


@pytest.mark.slow
@pytest.mark.parametrize("kind", TEXTS)
def test_no_endless_number_is_left_out_without_a_word(
    kind: str, tmp_path: Path
) -> None:
    text, path = TEXTS[kind], tmp_path / "x"
    path.write_text(text)
    read(Source(path))
    for place in re.finditer(r"(?<![\w.])\d+(?![\w.])", text):
        for number in ("1" + "0" * 18, LONGEST):
            path.write_text(_with(text, place, number))
            with pytest.raises(RecordError) as told:
                read(Source(path))
            assert len(str(told.value)) < 1000
            if "no format" not in str(told.value):  # its sign has changed
                line = text.count("\n", 0, place.start()) + 1
                assert f"line {line}: " in str(told.value)
                assert f"a number of {len(number):,} digits" in str(told.value)


def test_numbers_of_other_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(f"job {LONGEST} begins\n{CYCLICTEST}")
    (run,) = read(Source(path))
    assert run.threads[1].samples == 990
