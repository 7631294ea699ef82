"""What `app start` asks of the agent, and which requests fit nothing."""

import pytest

from rtscope.host.errors import UsageError
from rtscope.verbs.app.start import Policy, Request, options_of


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(), ""),
        (Request(policy=Policy.FIFO, priority=80), "--policy fifo --priority 80"),
        (
            Request(policy=Policy.DEADLINE, runtime="2ms/10ms"),
            "--policy deadline --runtime-ns 2000000 --deadline-ns 10000000 "
            "--period-ns 10000000",
        ),
        (
            Request(policy=Policy.DEADLINE, runtime="500us/1ms/1s"),
            "--policy deadline --runtime-ns 500000 --deadline-ns 1000000 "
            "--period-ns 1000000000",
        ),
        (Request(nice=0), "--nice 0"),
        (Request(policy=Policy.BATCH, nice=-5), "--policy batch --nice -5"),
        (Request(cpus="3,1-2"), "--cpus 1-3"),
        (Request(lock=True, reset_on_fork=True), "--reset-on-fork --lock-memory"),
        (Request(io="idle"), "--io 3:0"),
        (Request(io="realtime"), "--io 1:4"),
        (Request(io="best-effort:0"), "--io 2:0"),
        (Request(capabilities="sys_nice"), "--capabilities 800000"),
        (Request(capabilities="CAP_IPC_LOCK,Sys_Nice"), "--capabilities 804000"),
    ],
)
def test_each_thing_that_is_asked_for_becomes_an_option(
    request_: Request, words: str
) -> None:
    assert options_of(request_) == words.split()


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (Request(policy=Policy.FIFO), "needs a priority: add --priority 80"),
        (Request(policy=Policy.RR, priority=3, nice=1), "rr has no nice value"),
        (Request(priority=80), "add --policy fifo"),
        (Request(policy=Policy.BATCH, priority=1), "policies fifo and rr"),
        (Request(policy=Policy.DEADLINE), "add --runtime 2ms/10ms"),
        (Request(runtime="2ms/10ms"), "add --policy deadline"),
        (Request(policy=Policy.DEADLINE, runtime="2ms"), "write RUNTIME/PERIOD"),
        (Request(policy=Policy.DEADLINE, runtime="1/2/3/4"), "write RUNTIME/PERIOD"),
        (Request(policy=Policy.DEADLINE, runtime="2/10"), "no unit"),
        (Request(policy=Policy.DEADLINE, runtime="10ms/2ms"), "runtime <= deadline"),
        (Request(policy=Policy.DEADLINE, runtime="1ms/9ms/8ms"), "deadline <= period"),
        (Request(policy=Policy.DEADLINE, runtime="1us/8ms"), "1024 ns <= runtime"),
        (Request(policy=Policy.DEADLINE, runtime="1ms/1m"), "no period beyond"),
        (Request(cpus="x"), "--cpus: 'x': not a CPU list"),
        (Request(cpus="3-1"), "runs backwards"),
        (Request(cpus="2000"), "name CPUs below 1,024"),
        (Request(io="rt"), "write realtime:0"),
        (Request(io="idle:3"), "or idle"),
        (Request(io="best-effort:8"), "best-effort:7"),
        (Request(io="best-effort:"), "best-effort:7"),
        (Request(capabilities="nice"), "no such capability"),
        (Request(capabilities=""), "no such capability"),
    ],
)
def test_a_request_that_fits_nothing_is_refused_with_what_to_write(
    request_: Request, says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        options_of(request_)

    assert says in str(refused.value).replace('"', "'")
