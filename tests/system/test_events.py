"""Threads woken by events: the real agent, and its refusals."""

import pytest
from rig import CPUS, MS, Done, doubts, judged, measuring

pytestmark = pytest.mark.system

THREADS = ("futex", "eventfd", "pipe", "signal", "mq", "sem", "cond")

two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


@two_cpus
@pytest.mark.parametrize(
    "event", [*THREADS, "pty", "udp", "raw", "xdp", "futex:cpu=same"]
)
@pytest.mark.usefixtures("root")
def test_every_event_that_was_sent_is_a_sample_or_counted(event: str) -> None:
    with measuring("--event", event, seconds=0.1) as agent:
        done = agent.finish()

    if event in ("udp", "raw", "xdp") and done.status and "veth" in done.error.message:
        pytest.skip(done.error.message)  # a kernel without the driver
    result = done.result
    assert not {"identity_broken", "sums_inconsistent"} & doubts(judged(result)).keys()
    for thread in result.threads:
        assert thread.event is not None
        same = thread.event.stimulus_cpu == thread.cpu
        assert same == event.endswith("same")
        assert thread.event.stimulus_priority == thread.priority - 1
        assert thread.event.sent > 0
        assert thread.minor_faults == 0
        assert all(w.expiry_ns >= thread.start_ns + w.seq * MS for w in thread.worst)


@two_cpus
@pytest.mark.usefixtures("root")
def test_a_loop_that_never_sleeps_has_a_gap_in_every_interval() -> None:
    words = ("--event", "poll", "--cpus", str(CPUS[-1]))
    with measuring(*words, seconds=0.2, priority=50) as agent:
        done = agent.finish()

    result = done.result
    assert not {"identity_broken", "sums_inconsistent"} & doubts(judged(result)).keys()
    (thread,) = result.threads
    assert thread.event is None
    assert thread.voluntary_switches == thread.minor_faults == 0
    assert all(w.wake_ns > w.expiry_ns >= thread.start_ns for w in thread.worst)


@pytest.mark.usefixtures("root")
def test_a_real_time_loop_on_every_cpu_is_refused() -> None:
    with measuring("--event", "poll", seconds=0.2, priority=50) as agent:
        done = agent.finish()

    assert done.status == 3
    assert "nothing else of this machine would run" in done.error.message


@pytest.mark.usefixtures("root")
def test_interfaces_that_are_not_there_are_refused_by_name() -> None:
    with measuring("--event", "raw:from=rtscope-no:to=rtscope-ne") as agent:
        done = agent.finish()

    error = done.error
    assert done.status == 3
    assert "rtscope-no" in error.message
    assert error.cause == "event"


VANISHING = """
ip link add rtscope-a type veth peer name rtscope-b || exit 77
ip link set rtscope-a up && ip link set rtscope-b up || exit 77
(
    until grep -q rtscope-ev/ /proc/$$/task/*/comm; do sleep 0.1; done
    ip link del rtscope-a
) >/dev/null 2>&1 </dev/null &
exec "$@"
"""
"""Removes the interfaces when the stimulus runs; in a network namespace of its own."""


@two_cpus
@pytest.mark.parametrize("kind", ["raw", "xdp"])
@pytest.mark.usefixtures("root")
def test_an_interface_that_is_removed_ends_the_run_in_words(kind: str) -> None:
    prefix = ("unshare", "--net", "sh", "-c", VANISHING, "sh")
    words = ("--event", f"{kind}:from=rtscope-a:to=rtscope-b", "--cpus", str(CPUS[-1]))
    with measuring(*words, seconds=60, prefix=prefix) as agent:
        done = agent.finish()

    if done.status == 77:
        pytest.skip("no veth here")
    assert done.status == 3
    assert done.error.cause == "event"
    assert done.error.message.startswith(f"event {kind}: cannot ")
    assert "any more" in done.error.message


TWO_LINES = """
ip link add rtscope-a type veth peer name rtscope-b || exit 77
ip link add rtscope-c type veth peer name rtscope-d || exit 77
for name in rtscope-a rtscope-b rtscope-c rtscope-d; do ip link set $name up; done
"""


def on_lines(script: str, *options: str, seconds: float = 0.3) -> Done:
    """Run the agent in a network namespace of its own, with two pairs of interfaces."""
    shell = ("unshare", "--net", "--mount", "sh", "-c", f'{TWO_LINES}{script}exec "$@"')
    with measuring(*options, seconds=seconds, prefix=(*shell, "sh")) as agent:
        done = agent.finish()
    if done.status == 77:
        pytest.skip("no veth here")
    return done


@two_cpus
@pytest.mark.usefixtures("root")
def test_threads_on_one_line_get_their_own_frames_only() -> None:
    done = on_lines("", "--event", "raw:from=rtscope-a:to=rtscope-b")

    assert len(done.result.threads) > 1
    for thread in done.result.threads:
        assert thread.event is not None
        assert thread.event.doubled == thread.event.reordered == 0
        assert thread.event.sent - thread.event.lost == thread.samples
        assert all(w.expiry_ns >= thread.start_ns for w in thread.worst)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("down", "said"),
    [
        ("ip link set rtscope-a down\n", "cannot send a first packet"),
        ("ip link set rtscope-b down\n", "cannot receive a first packet"),
    ],
)
def test_an_interface_that_is_down_is_refused_at_once(down: str, said: str) -> None:
    done = on_lines(down, "--event", "raw:from=rtscope-a:to=rtscope-b")

    assert done.status == 3
    assert said in done.error.message
    assert "ip link set" in done.error.remedy


@pytest.mark.usefixtures("root")
def test_a_peer_that_is_silent_from_the_start_is_refused() -> None:
    done = on_lines("", "--event", "raw:from=rtscope-a:to=rtscope-c")

    assert done.status == 3
    assert "no packet comes through" in done.error.message
    assert "cable" in done.error.remedy


FIRST = """
exec 3<&0
"$@" >/dev/null 2>&1 <&3 &
until ip -d link show rtscope-b | grep -q prog/xdp; do sleep 0.1; done
"""
"""Begins the same beside it, on the same line; it ends with the test."""
AND_KILLED = """
kill -KILL $! && wait $!
ip -d link show rtscope-b | grep -q prog/xdp && exit 79
"""


@two_cpus
@pytest.mark.usefixtures("root")
def test_a_program_for_frames_is_gone_with_a_killed_agent() -> None:
    words = ("--event", "xdp:from=rtscope-a:to=rtscope-b", "--cpus", str(CPUS[-1]))
    done = on_lines(f"{FIRST}{AND_KILLED}", *words, seconds=1)

    (thread,) = done.result.threads
    assert thread.event is not None
    assert thread.event.sent > thread.event.lost
    assert thread.event.sent - thread.event.lost == thread.samples
    assert thread.event.doubled == thread.event.reordered == 0


@two_cpus
@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("cpus", "said", "remedy"),
    [(str(CPUS[-1]), "bind", "XDP program"), ("", "a second CPU", "--cpus")],
)
def test_an_interface_has_one_program_for_frames(
    cpus: str, said: str, remedy: str
) -> None:
    words = ("--event", "xdp:from=rtscope-a:to=rtscope-b")
    beside, only = (FIRST, ("--cpus", cpus)) if cpus else ("", ())
    done = on_lines(beside, *words, *only, seconds=30)

    assert done.status == 3
    assert "busy" in done.error.message
    assert said in done.error.message
    assert remedy in done.error.remedy


BRIDGED = """
ip link add rtscope-br type bridge || exit 77
ip link set rtscope-b master rtscope-br
ip link set rtscope-c master rtscope-br
ip link set rtscope-br up
"""
"""Joins both lines, whose ends then see no link that is down."""


def broken_by(*commands: str) -> str:
    """Return what does this when events have come through."""
    begun = "until grep -q rtscope-ev/ /proc/$$/task/*/comm; do sleep 0.1; done"
    done = "; ".join((begun, "sleep 0.5", *commands))
    return f"( {done} ) >/dev/null 2>&1 </dev/null &\n"


@two_cpus
@pytest.mark.usefixtures("root")
def test_what_a_silent_peer_keeps_is_lost_and_misses_its_period() -> None:
    event = "raw:from=rtscope-a:to=rtscope-d"
    again = ("sleep 2", "ip link set rtscope-b master rtscope-br")
    broken = broken_by("ip link set rtscope-b nomaster", *again)
    words = ("--event", event, "--cpus", str(CPUS[-1]), "--interval-ns", str(10 * MS))
    done = on_lines(f"{BRIDGED}{broken}", *words, seconds=6)

    (thread,) = done.result.threads
    assert thread.event is not None
    assert thread.event.lost > 0
    assert thread.event.sent - thread.event.lost == thread.samples
    assert thread.missed_periods == thread.event.lost + thread.event.full
    assert "events_interrupted" in doubts(judged(done.result))


@two_cpus
@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("kind", ["raw", "xdp"])
@pytest.mark.parametrize(
    ("to", "command"),
    [
        ("b", "ip link set rtscope-a down"),
        ("b", "ip link set rtscope-b down"),
        ("d", "ip link set rtscope-b nomaster"),
        ("d", "ip link del rtscope-br"),
    ],
)
def test_a_way_that_dies_in_the_middle_is_said(
    kind: str, to: str, command: str
) -> None:
    event = f"{kind}:from=rtscope-a:to=rtscope-{to}"
    joined = BRIDGED if to == "d" else ""
    words = ("--event", event, "--cpus", str(CPUS[-1]))
    done = on_lines(f"{joined}{broken_by(command)}", *words, seconds=4)

    assert done.status == 3
    assert done.error.cause == "event"
    assert done.error.message.startswith(f"event {kind}: cannot ")
    assert "any more" in done.error.message


UNUSED = "ip link set rtscope-a down; ip link set rtscope-b down\n"


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("used", "said"),
    [
        ("", "busy"),
        (UNUSED, "ot supported"),  # of no device: it would be gone at the end
        (f"{UNUSED}ip address add fd00::1/64 dev rtscope-a\n", "busy"),
        (f"{UNUSED}ip address add 192.0.2.1/24 dev rtscope-a\n", "busy"),
        ("ip link del rtscope-a\n", "No such device"),
    ],
)
def test_interfaces_that_somebody_uses_stay_where_they_are(
    used: str, said: str
) -> None:
    done = on_lines(used, "--event", "udp:from=rtscope-a:to=rtscope-b")

    assert done.status == 3
    assert said in done.error.message
    assert "interfaces" in done.error.remedy


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("event", ["can", "uio", "serial:from=ttyS0:to=ttyS0"])
def test_an_event_that_a_machine_cannot_have_is_refused_in_words(event: str) -> None:
    with measuring("--event", event) as agent:
        done = agent.finish()

    if done.status == 0:
        pytest.skip(f"this machine has {event}")
    assert done.status == 3
    assert done.error.cause in ("event", "capability")
    assert done.error.message.startswith(f"event {event.partition(':')[0]}: cannot ")
    assert done.error.remedy
    # Fewer CPUs do not help where not even one has its device.
    assert "name fewer" not in done.error.remedy


NAMED = """
mount -t tmpfs none /run && ip netns add rtscope-gone || exit 77
ip link set rtscope-a netns rtscope-gone && ip link set rtscope-b netns rtscope-gone
ip -n rtscope-gone link set rtscope-a up
ip -n rtscope-gone link set rtscope-b up
(
    until grep -q rtscope-ev/ /proc/$$/task/*/comm; do sleep 0.1; done
    ip netns del rtscope-gone
) >/dev/null 2>&1 </dev/null &
set -- ip netns exec rtscope-gone "$@"
"""


@two_cpus
@pytest.mark.usefixtures("root")
def test_a_namespace_whose_name_is_gone_lives_until_the_run_ends() -> None:
    done = on_lines(NAMED, "--event", "raw:from=rtscope-a:to=rtscope-b", seconds=1.5)

    assert done.status == 0
    for thread in done.result.threads:
        assert thread.event is not None
        assert thread.event.lost == 0


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("event", "dropped", "needed"),
    [
        ("xdp", "net_raw", "--cap-add BPF --cap-add NET_RAW --cap-add NET_ADMIN"),
        ("xdp:from=lo:to=lo", "bpf,-sys_admin", "add --cap-add BPF --cap-add NET_RAW"),
        ("udp", "net_admin", "--cap-add NET_ADMIN --cap-add SYS_ADMIN"),
        ("udp", "sys_admin", "--cap-add NET_ADMIN --cap-add SYS_ADMIN"),
        ("raw", "net_raw", "--cap-add NET_RAW --cap-add NET_ADMIN"),
        ("raw:from=lo:to=lo", "net_raw", "add --cap-add NET_RAW"),
        ("can", "sys_admin", "--cap-add NET_ADMIN --cap-add SYS_ADMIN"),
    ],
)
def test_a_right_that_is_missing_is_named_with_what_a_container_needs(
    event: str, dropped: str, needed: str
) -> None:
    without = ("setpriv", "--bounding-set", f"-{dropped}")
    words = ("--event", event, "--cpus", str(CPUS[-1]))
    with measuring(*words, prefix=without) as agent:
        done = agent.finish()

    assert done.status == 3
    assert done.error.cause == "capability"
    assert needed in done.error.remedy


WITHOUT_PTS = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs n /dev/pts; exec "$@"')
WITHOUT_LOCK = ("setpriv", "--bounding-set", "-ipc_lock,-sys_resource")


@two_cpus
@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("event", "prefix", "needed"),
    [
        ("udp", ("prlimit", "--nofile=8"), "ulimit -n"),
        ("mq", ("prlimit", "--msgqueue=0"), "ulimit -q"),
        ("signal", ("prlimit", "--sigpending=0"), "ulimit -i"),
        ("xdp", (*WITHOUT_LOCK, "prlimit", "--memlock=65536"), "ulimit -l"),
        ("pty", (*WITHOUT_PTS, "sh"), "devpts"),
        ("raw:from=rtscope-no:to=rtscope-ne", (), "ip link"),
        ("xdp:from=rtscope-no:to=rtscope-ne", (), "ip link"),
        ("serial:from=ttyS999:to=ttyS999", (), "serial:from="),
    ],
)
def test_what_an_event_lacks_is_named_with_what_gives_it(
    event: str, prefix: tuple[str, ...], needed: str
) -> None:
    words = ("--event", event, "--cpus", str(CPUS[-1]))
    with measuring(*words, prefix=prefix) as agent:
        done = agent.finish()

    assert done.status == 3
    assert done.error.cause == "event"
    assert needed in done.error.remedy


WITHOUT_TRACEFS = (
    *("unshare", "--mount", "sh", "-c"),
    'umount -ql /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; exec "$@"',
    "sh",
)
"""Where it is mounted, what this kernel lacks is seen before what one may not do."""


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("words", "prefix", "missing"),
    [
        (("--event", "xdp"), (), "CAP_BPF"),
        (
            ("--hold-cpu-awake",),
            ("setpriv", "--bounding-set", "-all"),
            "the first one gives root's rights",
        ),
        (("--event", "hwlat"), (), "CAP_SYS_ADMIN"),
    ],
)
def test_sudo_is_no_remedy_in_a_user_namespace(
    words: tuple[str, ...], prefix: tuple[str, ...], missing: str
) -> None:
    space = (*WITHOUT_TRACEFS, "unshare", "--user", "--map-root-user", *prefix)
    interval = ("--interval-ns", str(100 * MS))
    with measuring(*words, *interval, prefix=space) as agent:
        done = agent.finish()

    assert done.status == 3
    assert "sudo" not in done.error.remedy
    assert missing in done.error.remedy
    assert "user namespace" in done.error.remedy


@pytest.mark.usefixtures("root")
def test_the_rights_of_a_user_namespace_give_no_priority() -> None:
    with measuring(prefix=("unshare", "--user", "--map-root-user")) as agent:
        done = agent.finish()

    assert done.status == 3
    assert done.error.cause == "capability"
    assert "user namespace" in done.error.message
    assert "rootless" in done.error.remedy


@pytest.mark.usefixtures("root")
def test_a_kernel_without_the_tracer_hwlat_is_refused_in_words() -> None:
    with measuring("--event", "hwlat", "--interval-ns", str(100 * MS)) as agent:
        done = agent.finish()

    if done.status == 0:
        pytest.skip("this machine has the tracer hwlat")
    assert done.status == 3
    assert done.error.message.startswith("event hwlat: ")
    assert "CONFIG_HWLAT_TRACER" in done.error.remedy
