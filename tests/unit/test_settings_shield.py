"""What a shield changes, in which order, what stays there, and where there is none."""

from collections.abc import Mapping

import pytest

from fakes.printed import printed
from fakes.shielding import (
    ANSWERS,
    BACK,
    CLOCK,
    DEFAULT,
    FILES,
    HELD,
    MANAGED,
    WORK,
    Machine,
)
from rtscope.contract import Refused
from rtscope.host.errors import TargetError, UsageError
from rtscope.machine.settings.shield import (
    CONTROLLERS,
    EFFECTIVE,
    PARTITION,
    VERSION_1,
    shielded,
)
from rtscope.present.formats.shield import shield_blocks, shield_document


def test_the_partition_comes_first_and_all_is_put_back() -> None:
    machine = Machine()
    with shielded(machine, (2, 3)) as (shield, _):
        assert (shield.partition, shield.moved) == ("isolated", 2)

    assert [line for line in machine.log if "tasks" not in line] == [
        "root hold --set cgroup_cpusets:0=present --set shield:0=2-3 "
        "--set irq_affinity:7,9=0-1 --set default_irq_affinity:0=3 "
        "--set workqueue_cpumask:0=3",
        "stop hold",
        "kill hold",
    ]


def test_what_stays_is_named_with_the_reason() -> None:
    with shielded(Machine(), (2, 3)) as (shield, _):
        text = printed(shield_blocks(shield), width=200)
        document = shield_document(shield)

    assert {(one["name"], one["reason"]) for one in document["not_moved"]} == {
        ("ksoftirqd/2", "the kernel binds it to its CPU"),
        (
            "kworker/R-mld",
            "rescuer of a workqueue, at work when memory is short; nobody may move it",
        ),
        ("9 nvme0q1", MANAGED),
    }
    assert "CPU 2-3 is shielded: an isolated partition" in text
    assert "2 threads moved away; 4 settings changed, read back" in text
    assert f"1 interrupt not moved: {MANAGED} (9 nvme0q1)." in text
    # What held before is no change, and is not put back.
    assert WORK not in {one["path"] for one in document["changed"]}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({VERSION_1: "0-3\n", CONTROLLERS: "cpu\n"}, "those of cgroup v1"),
        ({CONTROLLERS: "cpu io\n"}, "has no CPU sets"),
        ({CONTROLLERS: ""}, "has no CPU sets"),
    ],
)
def test_where_there_is_no_partition_nothing_is_changed(
    files: Mapping[str, str], says: str
) -> None:
    machine = Machine(files={**FILES, **files})
    with pytest.raises(TargetError, match=says) as refused, shielded(machine, (2,)):
        pass

    assert "isolcpus=2 nohz_full=2" in str(refused.value)
    assert machine.log == []


def test_without_any_cgroup_it_is_refused() -> None:
    files = {path: text for path, text in FILES.items() if path != CONTROLLERS}
    with (
        pytest.raises(TargetError, match="no cgroup v2 is mounted"),
        shielded(Machine(files=files), (2,)),
    ):
        pass


@pytest.mark.parametrize(
    ("cpus", "says"),
    [((4,), "CPU 4 is not online"), ((0, 1, 2, 3), "leave one to the other tasks")],
)
def test_cpus_that_cannot_be_shielded_are_refused(
    cpus: tuple[int, ...], says: str
) -> None:
    with pytest.raises(UsageError, match=says), shielded(Machine(), cpus):
        pass


def test_a_partition_that_is_refused_ends_it_in_the_kernels_words() -> None:
    why = (
        "the kernel answered: isolated invalid (Cpu list in cpuset.cpus not exclusive)"
    )
    refused = Refused("shield", 0, "2-3", cause="partition", reason=why)
    machine = Machine([ANSWERS[0], refused, *ANSWERS[2:]])

    with (
        pytest.raises(TargetError, match="no shield of CPU 2-3: the kernel answered"),
        shielded(machine, (2, 3)),
    ):
        pass
    assert machine.log[-1] == "kill hold"


@pytest.mark.parametrize(
    ("held", "says"),
    [
        ({PARTITION: "isolated invalid (gone)\n"}, "shows isolated invalid"),
        ({EFFECTIVE: "2\n"}, "effective was set and now shows 2"),
        ({DEFAULT: "f\n"}, "default_smp_affinity was set and now shows f"),
        ({CLOCK: "0-3\n"}, "irq/7/smp_affinity_list was set and now shows 0-3"),
    ],
)
def test_a_setting_that_does_not_last_ends_it(
    held: Mapping[str, str], says: str
) -> None:
    machine = Machine(held={**HELD, **held})
    with pytest.raises(TargetError, match=says), shielded(machine, (2, 3)):
        pass
    assert machine.log[-1] == "kill hold"


def test_a_setting_that_is_not_put_back_is_named() -> None:
    with (
        pytest.raises(TargetError, match="did not confirm that it restored shield"),
        shielded(Machine(back=[*BACK[:2], BACK[3]]), (2, 3)),
    ):
        pass


def test_a_failure_inside_ends_the_shield() -> None:
    machine = Machine()
    with pytest.raises(ZeroDivisionError), shielded(machine, (2, 3)):
        raise ZeroDivisionError
    assert machine.log[-1] == "kill hold"
