"""What vcgencmd of a Raspberry Pi answers; its outputs are from its documentation."""

import pytest

from fakes.faketarget import FakeTarget
from fakes.trees import reader_of
from rtscope.host.errors import TargetError
from rtscope.machine.facts import FactValue
from rtscope.machine.firmware import GPU, with_firmware
from rtscope.machine.gather import gather

MODEL = "/proc/device-tree/model"
PI = {MODEL: "Raspberry Pi 3 Model B Plus Rev 1.3\0"}


def asked(files: dict[str, str], **programs: str) -> FactValue:
    target = FakeTarget({}, reader=reader_of(files), programs=programs)
    return with_firmware(target, gather(target.reader))[GPU]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("temp=48.3'C", "48.3 °C"),
        ("temp=107'C", "107.0 °C"),
        ("temp=-2.1'C", "-2.1 °C"),
    ],
)
def test_the_temperature_of_the_gpu_is_a_fact(said: str, value: str) -> None:
    fact = asked(PI, vcgencmd=said)

    assert (fact.value, fact.source) == (value, "vcgencmd measure_temp")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("VCHI initialization failed", "it answered 'VCHI initialization failed'"),
        ("temp=48.3'C extra", 'it answered "temp=48.3\'C extra"'),
        ("", "it did not answer"),
    ],
)
def test_another_answer_is_no_temperature(said: str, reason: str) -> None:
    fact = asked(PI, vcgencmd=said)

    assert (fact.value, fact.reason) == (None, reason)


def test_without_the_program_there_is_none() -> None:
    fact = asked(PI)

    assert (fact.value, fact.reason) == (None, "vcgencmd is not installed")


def test_another_machine_is_not_asked() -> None:
    fact = asked({MODEL: "StarFive VisionFive V2\0"}, vcgencmd="temp=48.3'C")

    assert (fact.value, fact.reason) == (None, "not a Raspberry Pi")
    assert asked({}, vcgencmd="temp=1.0'C").reason == "not a Raspberry Pi"


def test_a_program_that_does_not_end_ends_no_run() -> None:
    class Slow(FakeTarget):
        def first_line(self, command: object) -> str | None:
            raise TargetError("vcgencmd: not ended after 10 s")

    target = Slow({}, reader=reader_of(PI))
    fact = with_firmware(target, gather(target.reader))[GPU]

    assert fact.reason == "vcgencmd: not ended after 10 s"
    assert gather(target.reader)[GPU].reason == "only a run asks its firmware"
