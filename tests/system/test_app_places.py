"""The same is seen whether tracepoints are of CPUs or a thread's own."""

import shutil
import subprocess
from pathlib import Path

import pytest
from rig import SECOND_NS, Program, native_agent

from rtscope.contract import BY_CPU, WatchBegin, WatchedThread, WatchEnd

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]

ROOM = 8
"""Real-time threads whose tracepoints are of the CPUs; the first thread takes one."""

SOURCE = r"""
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static int to[2];

static void be_urgent(const char *name)
{
	struct sched_param param = { .sched_priority = 40 };

	prctl(PR_SET_NAME, name);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		exit(3);
}

static void rest(long ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static void *writer(void *unused)
{
	int null = open("/dev/null", O_WRONLY);

	(void)unused;
	be_urgent("writer");
	for (;;) {
		rest(5);
		if (write(null, "x", 1) != 1)
			exit(4);
	}
}

static void *later(void *unused)
{
	char byte;

	(void)unused;
	be_urgent("later");
	while (read(to[0], &byte, 1) == 1)
		;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	prctl(PR_SET_NAME, "poster");
	if (argc < 2 || pipe(to))
		return 3;
	for (int i = 0; i < atoi(argv[1]); i++)
		pthread_create(&thread, NULL, writer, NULL);
	rest(800);
	pthread_create(&thread, NULL, later, NULL);
	for (;;) {
		rest(2);
		if (write(to[1], "x", 1) != 1)
			return 4;
	}
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    out = tmp_path_factory.mktemp("places") / "prog"
    words = ("gcc", "-O1", "-pthread", "-o", out, "-x", "c", "-")
    subprocess.run(words, input=SOURCE, text=True, check=True)
    return out


SCRIPT = """
"$1" "$2" & pid=$!
sleep 0.4
"$3" watch --pid $pid --duration-ns "$4" --stacks 4
kill -KILL $pid
"""


def watched(
    program: Path, writers: int, *prefix: str
) -> tuple[WatchBegin, list[WatchedThread], WatchEnd]:
    """Start it, and watch it from 0.4 s on."""
    words = (program, writers, native_agent(), 2 * SECOND_NS)
    with Program([*prefix, "sh", "-c", SCRIPT, "sh", *map(str, words)]) as running:
        done = running.finish()
    begin, end = done.lines[0], done.lines[-1]
    assert isinstance(begin, WatchBegin), (begin, done.stderr)
    assert isinstance(end, WatchEnd)
    return begin, [one for one in done.lines if isinstance(one, WatchedThread)], end


def is_by_cpu(begin: WatchBegin) -> bool:
    (one,) = (one for one in begin.events if one.name == BY_CPU)
    return one.seen


def all_is_seen_of(thread: WatchedThread) -> None:
    """Assert what each writer does: it sleeps, and writes, for 2 s."""
    calls, sleeps = thread.events["blocking_call"], thread.events["relative_sleep"]
    assert sleeps.sampled == 4
    assert calls.sampled == 1  # of one call only a share, as others may follow
    assert calls.count > 10
    # not all of a thread begins and ends at once
    some = calls.count // 10
    assert abs(sleeps.count - calls.count) <= some
    assert calls.times is not None
    assert abs(calls.times.count - calls.count) <= some


def test_a_thread_for_which_the_cpus_have_no_room_has_its_own_events(
    program: Path,
) -> None:
    begin, threads, end = watched(program, ROOM + 2)

    writers = [one for one in threads if one.name == "writer"]
    assert is_by_cpu(begin)
    assert len(writers) == ROOM + 2
    for one in writers:
        all_is_seen_of(one)
    # two of the writers, one more for the first thread, and the one that came later,
    # if it was real-time already when it was found
    assert end.own_events in (3, 4)


def test_few_threads_have_their_events_on_the_cpus(program: Path) -> None:
    begin, threads, end = watched(program, 2)

    assert is_by_cpu(begin)
    assert end.own_events == 0
    for one in threads:
        if one.name == "writer":
            all_is_seen_of(one)


def test_in_another_namespace_of_pids_threads_have_their_own_events(
    program: Path,
) -> None:
    words = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("needs namespaces of PIDs")

    begin, threads, end = watched(program, 2, *words)

    (why,) = (one for one in begin.events if one.name == BY_CPU)
    assert (why.seen, why.cause) == (False, "namespace")
    assert "container" in why.remedy
    (why,) = (one for one in begin.events if one.name == "timeline")
    assert (why.seen, why.cause) == (False, "namespace")
    assert all(one.wakers == () for one in threads)
    assert end.own_events >= 2
    writers = [one for one in threads if one.name == "writer"]
    assert len(writers) == 2
    for one in writers:
        all_is_seen_of(one)


def test_who_wakes_a_real_time_thread_that_came_later_is_seen(program: Path) -> None:
    _, threads, _ = watched(program, 1)

    (later,) = (one for one in threads if one.name == "later")
    assert {waker.by.name for waker in later.wakers} == {"poster"}
