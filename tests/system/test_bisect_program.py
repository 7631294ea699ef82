"""`rtscope bisect --test` finds a planted commit, with real builds and boots."""

import json
import subprocess
from pathlib import Path

import pytest
from rig import NEEDS_APT, rtscope

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

COMMITS, FIRST_BAD, BROKEN = 12, 8, 6
PATIENCE_S = 7200.0

MAKEFILE = """\
control: control.c
\tcc -O1 -pthread -o $@ control.c
"""
TEST = """\
[program]
build = "make control"
command = ["./control"]

[time]
settle = "0s"
duration = "200ms"

[thread.fast]
period = "1ms"
response = "100us"
"""
SOURCE = """\
/* %(number)d */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock;
static volatile long sink;

static void work(long n)
{
	for (long i = 0; i < n; i++)
		sink += i;
}

static void locked(long n)
{
	pthread_mutex_lock(&lock);
	work(n);
	pthread_mutex_unlock(&lock);
}

static void fast(void)
{
	work(2000);
	%(plant)s
}

static void io(void)
{
	locked(30000);
}

struct loop {
	const char *name;
	int priority, cpu;
	long period_ns;
	void (*body)(void);
};

static void *run(void *argument)
{
	const struct loop *loop = argument;
	const struct sched_param p = { .sched_priority = loop->priority };
	struct timespec next;
	cpu_set_t cpus;

	pthread_setname_np(pthread_self(), loop->name);
	CPU_ZERO(&cpus);
	CPU_SET(loop->cpu, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		next.tv_nsec += loop->period_ns;
		while (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		loop->body();
	}
	return NULL;
}

int main(void)
{
	static struct loop loops[] = {
		{ "fast", 80, 1, 1000000, fast },
		{ "io", 20, 0, 7300000, io },
	};
	pthread_mutexattr_t inherits;
	pthread_t threads[2];

	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &inherits);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run, &loops[i]);
	pause();
}
"""
PLANTS = {
    "loop": ("work(20000);", "the program's own code"),
    "lock": ("locked(200);", "waiting for a lock"),
    "allocation": (
        "char *volatile p = malloc(1 << 20); memset(p, 1, 1 << 20);"
        " sink += p[7]; free(p);",
        "the program's own code",
    ),
}


def repository(here: Path, plant: str) -> list[str]:
    """A start and twelve commits: planted in the eighth, the sixth does not build."""

    def git(*words: str) -> str:
        argv = ["git", "-C", str(here), "-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run([*argv, *words], capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "--quiet")
    (here / "Makefile").write_text(MAKEFILE)
    (here / "control.toml").write_text(TEST)
    for number in range(COMMITS + 1):
        planted = plant if number >= FIRST_BAD else ""
        planted = "no C" if number == BROKEN else planted
        text = SOURCE % {"number": number, "plant": planted}
        (here / "control.c").write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "-m", f"control: Step {number}")
        if not number:
            git("tag", "start")
    return git("rev-list", "--reverse", "HEAD").split()


@pytest.mark.parametrize("what", PLANTS)
def test_a_planted_commit_is_found_with_its_cause(tmp_path: Path, what: str) -> None:
    plant, cause = PLANTS[what]
    tree = tmp_path / "tree"
    tree.mkdir()
    commits = repository(tree, plant)
    test, out = tree / "control.toml", tmp_path / "out"

    with rtscope(
        *("bisect", "--test", test, "--good", "start", "--bad", "HEAD"),
        *("--out", out, "--json"),
    ) as running:
        done = running.finish(PATIENCE_S)

    assert done.status == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["name"] for one in found["commits"]] == [commits[FIRST_BAD]]
    assert found["before"] == commits[FIRST_BAD - 1]
    assert [one["name"] for one in found["skipped"]] == [commits[BROKEN]]
    assert "the build command ended with status 2" in found["skipped"][0]["why"]
    before, after = (found["answers"][s]["budgets"][0] for s in ("before", "after"))
    assert before["value"] <= before["limit"] < after["value"]
    assert any(
        "is the first that differs" in one["says"] for one in found["differences"]
    )
    assert cause in found["cause"].lower()
    if what == "lock":
        assert "(io, real-time" in found["cause"]
