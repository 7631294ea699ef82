"""A machine that can be shielded, whose files and threads are others once it is."""

from collections.abc import Mapping, Sequence

from fakes.faketarget import FakeStream, FakeTarget
from fakes.threads import kernel, lines, task
from fakes.trees import reader_of
from rtscope.contract import Applied, Line, Refused, Restored, Tuned
from rtscope.machine.settings.shield import CONTROLLERS, EFFECTIVE, PARTITION

ONLINE = "/sys/devices/system/cpu/online"
DEFAULT = "/proc/irq/default_smp_affinity"
WORK = "/sys/devices/virtual/workqueue/cpumask"
NVME, CLOCK = "/proc/irq/9/smp_affinity_list", "/proc/irq/7/smp_affinity_list"

FILES = {
    ONLINE: "0-3\n",
    CONTROLLERS: "cpuset cpu io\n",
    "/proc/interrupts": (
        "           CPU0       CPU1       CPU2       CPU3\n"
        "   7:          5          5          5          5  IO-APIC   7-edge  rtc0\n"
        "   9:          1          1          1          1  PCI-MSI   0-edge  nvme0q1\n"
    ),
    CLOCK: "0-3\n",
    NVME: "2-3\n",
    DEFAULT: "f\n",
    WORK: "f\n",
}

HELD = {
    PARTITION: "isolated\n",
    EFFECTIVE: "2-3\n",
    CLOCK: "0-1\n",
    DEFAULT: "3\n",
    WORK: "3\n",
}

MANAGED = "its driver manages this interrupt"
ANSWERS: list[Line] = [
    Applied("cgroup_cpusets", 0, "absent", "present"),
    Applied("shield", 0, "absent", "2-3"),
    Applied("irq_affinity", 7, "0-3", "0-1"),
    Refused("irq_affinity", 9, "0-1", cause="managed", reason=MANAGED),
    Applied("default_irq_affinity", 0, "f", "3"),
    Applied("workqueue_cpumask", 0, "3", "3"),
    Tuned(2, applied=4, already=1, refused=1),
]
BACK: list[Line] = [
    Restored("default_irq_affinity", 0, "f"),
    Restored("irq_affinity", 7, "0-3"),
    Restored("shield", 0, "absent"),
    Restored("cgroup_cpusets", 0, "absent"),
]

BEFORE = lines(
    task(10, cpus="0-3"),
    task(11, cpus="2"),
    task(12, cpus="0"),
    kernel(20, "ksoftirqd/2", cpus="2"),
    kernel(21, "kworker/R-mld", cpus="0-3"),
)
AFTER = lines(
    task(10, cpus="0-1"),
    task(11, cpus="0-1"),
    task(12, cpus="0"),
    kernel(20, "ksoftirqd/2", cpus="2"),
    kernel(21, "kworker/R-mld", cpus="0-3"),
)


class Machine(FakeTarget):
    """A machine whose files and threads are others once settings are held."""

    def __init__(
        self,
        answers: Sequence[Line] = ANSWERS,
        *,
        back: Sequence[Line] = BACK,
        files: Mapping[str, str] = FILES,
        held: Mapping[str, str] = HELD,
    ) -> None:
        super().__init__(
            {"hold": [list(answers), *([[]] * 50)]},
            on_stop={"hold": [list(back)]},
            reader=reader_of(files),
        )
        self._after = reader_of({**files, **held})
        self._scripts = {**self._scripts, "tasks": [BEFORE]}

    def start_agent(
        self, args: Sequence[str], *, privileged: bool = False
    ) -> FakeStream:
        """Hold what was asked for."""
        if args[0] == "hold":
            self.reader = self._after
            self._scripts = {**self._scripts, "tasks": [AFTER]}
        return super().start_agent(args, privileged=privileged)
