"""Boot parameters that a kernel did not take: the messages of Linux 6.12."""

import pytest

from rtscope.machine.kernelidentity import ignored_parameters

LOG = """\
<5>Linux version 6.12.117 (rtscope@rtscope) #1 SMP PREEMPT_RT
<5>Unknown kernel command line parameters "nokaslr pti=off rcu_nocbs=all", will be \
passed to user space.
<2>Kernel compiled without mitigations, ignoring 'mitigations'; system may still be \
vulnerable
<4>Malformed early option 'pti'
<3>Booting kernel: `9' too large for parameter `kgdboc'
<2>Unsupported mitigations=of, system may still be vulnerable
<3>Booting kernel: `soon' invalid for parameter `threadirqs'
<3>Failed to set sysctl parameter 'kernel.watchdog=1': parameter not found
<3>Failed to set sysctl parameter 'vm.stat_interval=x': invalid value
<3>Error -EIO opening proc file to set sysctl parameter 'kernel.odd=1'
<6>  with environment:
<6>    rcu_nocbs=all
"""


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("rcu_nocbs=all", "unknown to this kernel"),
        ("mitigations=off", "this kernel was built without mitigations"),
        ("threadirqs=soon", "not a value that this kernel takes"),
        ("pti=maybe", "not a value that this kernel takes"),
        ("kgdboc=9", "not a value that this kernel takes"),
        ("mitigations=of", "not a value that this kernel takes"),
        ("sysctl.kernel.watchdog=1", "parameter not found"),
        ("sysctl.vm.stat_interval=x", "invalid value"),
        ("sysctl.kernel.odd=1", "cannot be set"),
    ],
)
def test_a_parameter_that_was_not_taken_is_named_with_the_reason(
    word: str, why: str
) -> None:
    assert ignored_parameters(LOG, ["nohz=off", word]) == {word: why}


@pytest.mark.parametrize("word", ["nohz=off", "mitigations", "skew_tick=1"])
def test_a_parameter_without_a_message_was_taken(word: str) -> None:
    assert not ignored_parameters(LOG.replace("ignoring 'mitigations'", ""), [word])


def test_what_nobody_asked_for_is_not_named() -> None:
    assert not ignored_parameters(LOG, [])
    assert not ignored_parameters("", ["rcu_nocbs=all"])


def test_parameters_are_named_in_the_order_in_which_they_were_asked_for() -> None:
    asked = ["mitigations=off", "skew_tick=1", "rcu_nocbs=all"]

    assert [*ignored_parameters(LOG, asked)] == ["mitigations=off", "rcu_nocbs=all"]
