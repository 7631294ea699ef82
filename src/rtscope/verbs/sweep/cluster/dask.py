"""
The scheduler of a Dask cluster, and what its workers run, in bounded memory.

`distributed` is an extra: it is loaded here alone, and only when asked for.
"""

import asyncio
import contextlib
import itertools
import logging
import queue
import re
import resource
import ssl
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from rtscope.boards.parts.bundle import export_part, import_part
from rtscope.boards.parts.cache import Part, cache_dir
from rtscope.host.errors import HostError, RtscopeError, TargetError, UsageError
from rtscope.host.escape import printable
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.host.process import start_thread
from rtscope.host.version import __version__
from rtscope.verbs.sweep.cluster.address import SchedulerAddress
from rtscope.verbs.sweep.cluster.task import Answer, Task, answer_of, answer_to

# --- A limit of memory, for where a library reads what a stranger sends without one ---

_DATA = re.compile(r"^VmData:\s*([0-9]+) kB$", re.MULTILINE)


@contextmanager
def at_most_more(more_bytes: int) -> Iterator[None]:
    """
    Let this process take so many bytes more, else whatever asks raises MemoryError.

    Programs that it starts meanwhile have the same limit of data.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    said = _DATA.search(Path("/proc/self/status").read_text())
    if said is None:  # not this kernel's: it has no such limit either
        yield
        return
    most = int(said[1]) * 1024 + more_bytes
    if soft != resource.RLIM_INFINITY:
        most = min(most, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


# --- the scheduler of a Dask cluster, and what its workers run ------------------------

CONNECT_S = 15
MOST_BYTES = 320 << 20
"""What a scheduler and all answers may take, and what is made of them, beside 150 MiB.

The largest part that is sent to a worker has 65 MiB.
"""
TOO_MUCH = f"it sends more than fits into {MOST_BYTES >> 20} MiB"
POLL_S = 0.05
ANSWER_S = 15
"""For what the scheduler, or a worker that is to be given tasks, is asked."""
RESULT_S = 30
"""For what a worker has ready; if it has died, the run is tried again."""
SEND_S = 300
LEAVE_S = 5
UNKNOWN = "an unknown worker"
Given = TypeVar("Given")
INSTALL = "pip install 'rtscope[cluster]'"


@contextlib.contextmanager
def connected(address: SchedulerAddress) -> Iterator["DaskScheduler"]:
    """
    Give the scheduler at an address.

    Raises UsageError without the extra or for certificates that cannot be used,
    TargetError if nothing answers there.
    """
    try:
        import distributed  # noqa: F401 -- its memory is not the scheduler's
    except ImportError as error:
        raise UsageError(
            f"--on {address.url}: needs the Python package distributed; type {INSTALL}"
        ) from error
    # distributed reads and unpacks whatever comes, of any size.
    with at_most_more(MOST_BYTES), _connected(address) as scheduler:
        yield scheduler


@contextlib.contextmanager
def _connected(address: SchedulerAddress) -> Iterator["DaskScheduler"]:
    import distributed

    _silence("distributed", "tornado")  # rtscope tells each failure itself
    security = None
    if (files := address.certificates) is not None:
        security = distributed.Security(
            tls_ca_file=str(files.ca),
            tls_client_cert=str(files.certificate),
            tls_client_key=str(files.key),
            require_encryption=True,
        )
    try:
        asyncio.run(asyncio.wait_for(_greet(address.url, security), CONNECT_S))
        client = _client_class()(
            address.url,
            security=security,
            timeout=CONNECT_S,
            set_as_default=False,
            name="rtscope",
        )
    except ssl.SSLError as error:
        raise UsageError(
            f"--on {address.url}: cannot use --tls-ca, --tls-cert and --tls-key: "
            f"{_first_line(error)}; name the files of one authority"
        ) from error
    except Exception as error:  # whatever reading the bytes of a stranger raises
        raise TargetError(
            f"no scheduler answers at {address.url} within {CONNECT_S} s: "
            f"{_first_line(error)}; start one with dask scheduler"
        ) from error
    scheduler = DaskScheduler(client, address.url)
    try:
        yield scheduler
    finally:
        scheduler.close()


def _client_class() -> Any:
    """Return distributed's client, which leaves at once what it cannot understand."""
    import distributed

    class Client(distributed.Client):  # type: ignore[misc]
        async def _ensure_connected(self, timeout: Any = None) -> None:
            # Only after this error, it closes; else its destructor waits for an answer.
            try:
                await super()._ensure_connected(timeout=timeout)
            except Exception as error:  # whatever the bytes of a stranger raise
                raise OSError(_first_line(error)) from error

    return Client


async def _greet(url: str, security: Any) -> None:
    """
    Ask what listens at an address who it is; ValueError if that is no scheduler.

    A client that has once begun with something else is not left without a wait and a
    traceback of distributed's own.
    """
    from distributed.comm import connect

    options = {} if security is None else security.get_connection_args("client")
    comm = await connect(url, timeout=CONNECT_S, **options)
    try:
        await comm.write({"op": "identity", "reply": True})
        said = await comm.read()
    finally:
        comm.abort()
    if not isinstance(said, dict) or said.get("type") != "Scheduler":
        raise ValueError("what listens there is no scheduler of Dask")


class DaskScheduler:
    """A `rtscope.verbs.sweep.cluster.runner.Scheduler`."""

    def __init__(self, client: Any, address: str) -> None:
        from distributed import as_completed

        self.address = address
        self._client = client
        self._queue = as_completed(loop=client.loop)
        self._futures: dict[int, Any] = {}
        self._tickets: dict[str, int] = {}
        self._numbers = itertools.count(1)
        self._session = f"rtscope-{client.id}"

    def workers(self) -> Mapping[str, int]:
        """Return the threads of each worker by its address."""
        self._refuse_lost()
        return self._call(
            lambda: {str(a): int(n) for a, n in self._client.nthreads().items()}
        )

    def examine(self, worker: str) -> str:
        """Return why a worker cannot take tasks, else nothing."""
        try:
            answers = _in_time(
                lambda: self._client.run(about, workers=[worker], on_error="return")
            )
        except Exception as error:  # whatever the way to the worker raised
            self._refuse_lost()
            return f"it does not answer: {_first_line(error)}"
        said = answers.get(worker)
        if isinstance(said, ImportError):
            return f"it has no rtscope; install rtscope[cluster] {__version__} there"
        if said is None or isinstance(said, BaseException):
            return f"it does not answer: {_first_line(said)}"
        if said != __version__:
            other = printable(str(said))[:40]
            return f"it has rtscope {other}; install {__version__} there, as here"
        return ""

    def submit(self, task: Task, *, among: Collection[str] | None) -> int:
        """Give it a task, and return a ticket."""
        ticket = next(self._numbers)
        future = self._call(
            lambda: self._client.submit(
                on_worker,
                asdict(task),
                self._session,
                key=f"{self._session}-{task.bundle[:8]}-{ticket}",
                pure=False,
                workers=None if among is None else list(among),
                allow_other_workers=False,
            )
        )
        self._futures[ticket], self._tickets[future.key] = future, ticket
        self._queue.add(future)
        return ticket

    def give_up(self, ticket: int) -> None:
        """Take a task back; what a worker has begun it ends when this client goes."""
        future = self._futures.pop(ticket, None)
        if future is not None:
            with contextlib.suppress(Exception):
                future.cancel()

    def answers(self, timeout_s: float) -> Mapping[int, Answer]:
        """Wait for the next answers, and return them by ticket."""
        answers: dict[int, Answer] = {}
        self._refuse_lost()
        end = time.monotonic() + timeout_s
        while not self._queue.has_ready() and time.monotonic() < end:
            time.sleep(POLL_S)
        if self._queue.has_ready():
            for future in self._queue.next_batch(block=False):
                ticket = self._tickets.pop(future.key, 0)
                if self._futures.pop(ticket, None) is not None:
                    answers[ticket] = self._answer(future)
        return answers

    def computing(self) -> Mapping[str, Sequence[int]]:
        """Return the tickets that each worker computes or has waiting."""
        self._refuse_lost()
        tickets = self._tickets
        return self._call(
            lambda: {
                str(worker): [tickets[key] for key in of if key in tickets]
                for worker, of in self._client.processing().items()
            }
        )

    def send(self, part: Part, pin: str, *, worker: str) -> str:
        """Give a part to a worker; return why it could not take it, else nothing."""
        with temporary_folder("part", error=HostError) as folder:
            file = folder / "part.tar"
            export_part(file, part)
            content = file.read_bytes()
        try:
            data = self._client.scatter(content, workers=[worker], hash=False)
            future = self._client.submit(
                take_part, data, part.name, pin, pure=False, workers=[worker]
            )
            end = time.monotonic() + SEND_S
            while not future.done():
                if worker not in self.workers():
                    return "it is gone"
                if time.monotonic() > end:
                    return f"it did not take it within {SEND_S} s"
                time.sleep(POLL_S)
            return str(future.result(timeout=RESULT_S))
        except TargetError:
            raise
        except Exception as error:  # whatever the worker or the way to it raised
            self._refuse_lost()
            return _first_line(error)

    def wait(self, seconds: float) -> None:
        """Wait before looking again."""
        time.sleep(seconds)

    def close(self) -> None:
        """End what the workers still boot for this client, and leave."""
        with contextlib.suppress(Exception):
            if self._client.status == "running":
                _in_time(
                    lambda: self._client.run(
                        end_session, self._session, on_error="ignore"
                    ),
                    LEAVE_S,
                )
        with contextlib.suppress(Exception):
            self._client.close(timeout=LEAVE_S)

    def _answer(self, future: Any) -> Answer:
        if future.status == "finished":
            try:
                return answer_of(future.result(timeout=RESULT_S))
            except Exception as error:  # whatever the worker or the way to it raised
                self._refuse_lost()
                return Answer("failed", UNKNOWN, why=_first_line(error))
        self._refuse_lost()
        raised = self._call(future.exception) if future.status == "error" else None
        last = getattr(raised, "last_worker", None)
        who = str(getattr(last, "address", "")) or UNKNOWN
        return Answer("failed", who, why=_first_line(raised or "the task was lost"))

    def _call(self, call: Callable[[], Given]) -> Given:
        """Call the scheduler; TargetError if it is gone, or does not answer."""
        try:
            return _in_time(call)
        except Exception as error:  # whatever a hostile answer raises
            raise TargetError(self._gone(_first_line(error))) from error

    def _refuse_lost(self) -> None:
        if self._client.status != "running":
            raise TargetError(self._gone("the connection is lost"))

    def _gone(self, why: str) -> str:
        return (
            f"the scheduler at {self.address} does not answer: {why}; start it and its "
            "workers again"
        )


def _in_time(call: Callable[[], Given], timeout_s: float | None = None) -> Given:
    """
    Return what a call of distributed returns, or raise what it raises.

    It has no limit of its own where the other end is silent. Raises TimeoutError after
    `timeout_s`, or ANSWER_S.
    """
    limit_s = ANSWER_S if timeout_s is None else timeout_s
    done: queue.SimpleQueue[Callable[[], Given]] = queue.SimpleQueue()

    def work() -> None:
        try:
            given = call()
            done.put(lambda: given)
        except Exception as error:  # for whoever waits
            done.put(partial(_raise, error))

    start_thread(work)
    try:
        outcome = done.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError(f"no answer within {limit_s} s") from None
    return outcome()


def _raise(error: Exception) -> NoReturn:
    raise error


def about() -> str:
    """Return the version of rtscope; runs on a worker."""
    return __version__


def on_worker(task: Mapping[str, Any], session: str) -> dict[str, Any]:
    """Answer a task; runs on a worker."""
    from distributed import get_worker

    worker = get_worker()
    ended = _ended(worker)
    answer = answer_to(
        Task(**task),
        worker=worker.address,
        cache=cache_dir(),
        stopped=lambda: session in ended,
    )
    return asdict(answer)


def take_part(content: bytes, name: str, pin: str) -> str:
    """Keep a part in the cache; runs on a worker. Return why not, else nothing."""
    try:
        with temporary_folder("part", error=HostError) as folder:
            file = folder / f"{name}.tar"
            file.write_bytes(content)
            import_part(file, pin=pin, cache=cache_dir())
    except (RtscopeError, OSError) as error:
        return str(error)
    return ""


def end_session(session: str, dask_worker: Any = None) -> None:
    """End the boots of a client that goes; runs on a worker."""
    _ended(dask_worker).add(session)


def _ended(worker: Any) -> set[str]:
    """Return the sessions that have ended, which a worker remembers."""
    sessions: set[str] = worker.__dict__.setdefault("rtscope_ended", set())
    return sessions


def _silence(*packages: str) -> None:
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in packages:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _first_line(error: object) -> str:
    if isinstance(error, MemoryError):
        return TOO_MUCH
    lines = str(error).strip().splitlines()
    return printable(lines[0][:300]) if lines else type(error).__name__
