"""
A lab of labgrid on this machine: a coordinator, an exporter, and a switch of power.

All are real programs on free ports of 127.0.0.1; the switch answers HTTP, as a strip of
sockets does, and remembers what it was told.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fakes.sshd import Board, me

PATIENCE_S = 60.0

# labgrid forks with gRPC inside; its own tests ask for the same.
OF_GRPC = {"GRPC_ENABLE_FORK_SUPPORT": "0"}


@dataclass(frozen=True, slots=True)
class Lab:
    """Programs of labgrid that run."""

    coordinator: str
    """HOST:PORT."""

    @property
    def environ(self) -> dict[str, str]:
        """What a client needs in its environment."""
        return {**OF_GRPC, "LG_COORDINATOR": self.coordinator}

    def client(self, *words: str, user: str = "") -> str:
        """Return what labgrid's client prints; it must succeed."""
        done = subprocess.run(
            [*_module("client"), *words],
            env={
                **os.environ,
                **self.environ,
                **({"LG_USERNAME": user} if user else {}),
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def acquired(self) -> list[str]:
        """Return the places that somebody holds."""
        rows = self.client("who").splitlines()[1:]
        return [row.split()[2] for row in rows]


def _module(name: str) -> list[str]:
    return [sys.executable, "-P", "-m", f"labgrid.remote.{name}"]


def service(one: Board) -> Mapping[str, Any]:
    """Return the resource of a board, as an exporter has it."""
    return {"address": "127.0.0.1", "port": one.port, "username": me()}


@contextlib.contextmanager
def lab(directory: Path, exports: Mapping[str, Mapping[str, Any]]) -> Iterator[Lab]:
    """Run a lab with a place for each export, of its name."""
    with contextlib.ExitStack() as held:
        words = [*_module("coordinator"), "-l", "127.0.0.1:0"]
        log = held.enter_context(_running(directory / "coordinator", words))
        _until(lambda: "listening on" in _text(log), log)
        found = re.search(r"listening on (\S+)", _text(log))
        assert found is not None
        made = Lab(found[1])
        file = directory / "exports.yaml"
        file.write_text(json.dumps(exports))  # JSON is YAML
        words = [*_module("exporter"), "--name", "rack", "-c", made.coordinator]
        log = held.enter_context(_running(directory / "exporter", [*words, str(file)]))
        resources = sum(map(len, exports.values()))
        _until(lambda: len(made.client("resources").split()) >= resources, log)
        for name in exports:
            made.client("-p", name, "create")
            made.client("-p", name, "add-match", f"rack/{name}/*")
        yield made


@contextlib.contextmanager
def _running(place: Path, words: list[str]) -> Iterator[Path]:
    place.mkdir(parents=True)
    log = place / "log"
    with log.open("wb") as file:
        program = subprocess.Popen(
            words,
            cwd=place,
            env={**os.environ, **OF_GRPC, "PYTHONUNBUFFERED": "1"},
            stdout=file,
            stderr=file,
        )
    try:
        yield log
    finally:
        program.terminate()
        try:
            program.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def _text(log: Path) -> str:
    return log.read_text("utf-8", "replace")


def _until(true: Any, log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, _text(log)
        time.sleep(0.05)


@dataclass(slots=True)
class Switch:
    """A switch of power for one board."""

    port: int
    is_on: bool = False
    told: list[str] = field(default_factory=list)
    """What it was told, `on` and `off`."""

    @property
    def export(self) -> Mapping[str, Any]:
        """The resource, as an exporter has it."""
        host = f"http://127.0.0.1:{self.port}/{{index}}/{{value}}"
        return {"model": "simplerest", "host": host, "index": 1}


@contextlib.contextmanager
def switch(*, is_on: bool = False) -> Iterator[Switch]:
    """Run a switch, which is off."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            value = self.path.rpartition("/")[2] if self.path.count("/") > 1 else ""
            if value:
                one.is_on = value == "1"
                one.told.append("on" if one.is_on else "off")
            body = b"1" if one.is_on else b"0"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        one = Switch(server.server_port, is_on)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield one
        finally:
            server.shutdown()
            thread.join()
