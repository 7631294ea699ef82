"""Where a sweep may compute: plain tcp on this machine alone, TLS elsewhere."""

import sys
from pathlib import Path

import pytest

from rtscope.host.errors import UsageError
from rtscope.verbs.sweep.cluster.address import (
    Certificates,
    SchedulerAddress,
    scheduler_address,
)
from rtscope.verbs.sweep.cluster.dask import connected


def address(text: str, *files: Path) -> SchedulerAddress | None:
    ca, certificate, key = (*files, None, None, None)[:3]
    return scheduler_address(text, ca=ca, certificate=certificate, key=key)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem")]
    for path in made:
        path.write_text("")
    return made


def test_local_is_no_scheduler() -> None:
    assert address("local") is None


@pytest.mark.parametrize(
    "text",
    ["tcp://127.0.0.1:8786", "tcp://127.9.9.9:1", "tcp://[::1]:9", "tcp://localhost:8"],
)
def test_plain_tcp_is_for_this_machine(text: str) -> None:
    assert address(text) == SchedulerAddress(text, None)


@pytest.mark.parametrize(
    "text",
    [
        "tcp://192.168.1.7:8786",
        "tcp://cluster:8786",
        "tcp://0.0.0.0:8786",
        "tcp://[::]:8786",
        "tcp://localhost.example.com:8786",
        "tcp://127.0.0.1.example.com:8786",
    ],
)
def test_plain_tcp_elsewhere_is_refused_in_words(text: str) -> None:
    with pytest.raises(UsageError, match="anybody in a network could run programs"):
        address(text)


@pytest.mark.parametrize("text", ["", "8786", "http://a:1", "tcp://a", "tls://-a:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write local, tcp:"):
        address(text)


@pytest.mark.parametrize(
    "port", ["0", "65536", "70000", pytest.param("9" * 5000, id="huge")]
)
@pytest.mark.parametrize("text", ["tcp://127.0.0.1", "tls://cluster"])
def test_a_port_that_no_scheduler_can_have_is_refused(
    text: str, port: str, files: list[Path]
) -> None:
    given = files if text.startswith("tls") else []
    with pytest.raises(UsageError, match="a port is a number from 1 to 65535"):
        address(f"{text}:{port}", *given)


def test_the_highest_port_is_one() -> None:
    assert address("tcp://127.0.0.1:65535") is not None


def test_tls_takes_all_three_files(files: list[Path]) -> None:
    found = address("tls://cluster.example.com:8786", *files)

    assert found is not None
    assert found.certificates == Certificates(*files)


def test_tls_without_a_file_names_the_option(files: list[Path]) -> None:
    with pytest.raises(UsageError, match="needs --tls-cert, --tls-key too"):
        address("tls://cluster:8786", files[0])
    files[1].unlink()
    with pytest.raises(UsageError, match=r"--tls-cert .*cert.pem: no such file"):
        address("tls://cluster:8786", *files)


@pytest.mark.parametrize("text", ["local", "tcp://127.0.0.1:1"])
def test_certificates_without_tls_are_refused(text: str, files: list[Path]) -> None:
    with pytest.raises(UsageError, match="leave out --tls-ca"):
        address(text, files[0])


def test_without_the_extra_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    with (
        pytest.raises(UsageError, match=r"pip install 'rtscope\[cluster\]'"),
        connected(SchedulerAddress("tcp://127.0.0.1:1", None)),
    ):
        pass


def test_certificates_that_are_none_are_refused(files: list[Path]) -> None:
    with (
        pytest.raises(UsageError, match="cannot use --tls-ca, --tls-cert"),
        connected(SchedulerAddress("tls://127.0.0.1:1", Certificates(*files))),
    ):
        pass
