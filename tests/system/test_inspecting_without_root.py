"""Who is not root is told what was not seen and why, and gets the right status."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rig import Program
from test_rights import AS_NOBODY, python_for
from test_thread_list import scene

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]


REFUSED = (
    "Permission denied|Operation not permitted|may not be read|no such file"
    "|debugfs is not mounted"
)


def as_nobody(*words: str, scratch: Path) -> tuple[int, Any, str]:
    """Run the command as a user without any right; return status, JSON and talk."""
    argv = [*AS_NOBODY, *python_for("65534"), *words, "--json"]
    env = {"HOME": str(scratch), "TMPDIR": str(scratch)}
    scratch.chmod(0o777)
    with Program(argv, env=env) as program:
        done = program.finish()
    assert "Traceback" not in done.stderr
    return done.status, json.loads(done.stdout or "null"), done.stderr


def test_an_audit_names_every_refusal_and_fails_for_the_missing_right(
    scratch: Path,
) -> None:
    status, document, _ = as_nobody("audit", "--observe", "0.1", scratch=scratch)
    rows = {row["id"]: row for row in document["checks"]}

    # Real-time policies are refused to this user, and that is fatal.
    assert status == 1
    assert rows["realtime_policy"]["outcome"] == "fail"
    assert rows["realtime_policy"]["message"] == (
        "EPERM: neither CAP_SYS_NICE nor a limit on real-time priorities above 0"
    )
    # Only root may read these: none of them passes, and each says what refused it.
    for name in ("cpu_dma_latency", "fair_server", "current_tracer", "trace_events"):
        row = rows[name]
        told = json.dumps(row["evidence"]) + row["message"]
        assert row["outcome"] in ("unknown", "not applicable"), row
        assert row["outcome"] != "unknown" or re.search(REFUSED, told), row
    unknown = [row for row in rows.values() if row["outcome"] == "unknown"]
    assert all(row["message"] for row in unknown)
    assert "Permission denied" in json.dumps(rows["cpu_dma_latency"])


def test_the_exit_status_of_an_audit_follows_what_failed_and_not_what_is_unknown(
    scratch: Path,
) -> None:
    (scratch / "config").write_text("CONFIG_PREEMPT_RT=y\n")
    (scratch / "config").chmod(0o644)

    status, document, _ = as_nobody(
        "audit", "--config", str(scratch / "config"), scratch=scratch
    )

    assert status == 4  # an excerpt shows nothing
    assert document["summary"]["unknown"] > 5
    assert document["summary"]["fail"] == 0


def test_threads_of_others_are_listed_with_what_is_refused_named(
    scratch: Path,
) -> None:
    with scene() as (pid, made):
        status, document, _ = as_nobody("tasks", "--pid", str(pid), scratch=scratch)

    rows = {row["tid"]: row for row in document["threads"]}
    assert status == 0
    assert set(rows) == {pid, *made.values()}
    # Policies are open to everybody; the slack of another user's timers is not.
    assert rows[made["fifo"]]["policy"] == "fifo"
    assert rows[made["deadline"]]["deadline"]["period_ns"] == 100_000_000
    assert rows[made["rr"]]["timer_slack_ns"] is None
    assert rows[made["rr"]]["unreadable"] == {
        "timer_slack_ns": "Operation not permitted"
    }
    refused = [note for note in document["notes"] if "timer slack" in note]
    assert len(refused) == 1
    assert "Run as root" in refused[0]
