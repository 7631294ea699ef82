"""`rtscope app check` refuses a time out of range, and -q with -v."""

import pytest

from fakes.commandline import Rtscope


@pytest.mark.parametrize(
    ("option", "time", "least"),
    [
        ("--settle", "999us", "1ms"),
        ("--settle", "61m", "1ms"),
        ("--duration", "99ms", "100ms"),
        ("--duration", "2h", "100ms"),
        ("--period", "999ns", "1us"),
        ("--response", "2h", "1us"),
    ],
)
def test_a_time_out_of_range_is_refused_with_the_range(
    rtscope: Rtscope, option: str, time: str, least: str
) -> None:
    said = rtscope("app", "check", option, time, "100")

    assert said.status == 2
    assert f"{option}: {time}: write {least} to 1h" in said.err


def test_quiet_and_verbose_exclude_each_other(rtscope: Rtscope) -> None:
    said = rtscope("app", "check", "-q", "-v", "100")

    assert said.status == 2
    assert "--quiet and --verbose exclude each other" in said.err


def test_light_refuses_what_needs_the_cycles(rtscope: Rtscope) -> None:
    for option in ("--period", "--response"):
        said = rtscope("app", "check", "--light", option, "5ms", "1")

        assert said.status == 2
        assert f"{option} needs the cycles, which --light leaves out" in said.err
