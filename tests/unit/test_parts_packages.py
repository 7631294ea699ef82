"""Packages as exact inputs: what apt says, and lock files that are read strictly."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rtscope.boards.parts import aptroot
from rtscope.boards.parts.aptroot import (
    NO_LOCK,
    Package,
    fetch,
    lock_text,
    parse_printed,
    read_lock,
    resolve,
    resolve_source,
)
from rtscope.host import process
from rtscope.host.errors import BoardError, UsageError

SHA = "a" * 64
LINE = (
    "'http://deb.debian.org/debian/pool/main/z/zlib/"
    "zlib1g_1.3.dfsg%2breally1.3.1-1%2bb1_amd64.deb' "
    f"zlib1g_1%3a1.3.dfsg+really1.3.1-1+b1_amd64.deb 88892 SHA256:{SHA}"
)


def test_a_line_of_apt_is_a_package_with_its_epoch() -> None:
    (package,) = parse_printed(LINE)

    assert (package.name, package.arch) == ("zlib1g", "amd64")
    assert package.version == "1:1.3.dfsg+really1.3.1-1+b1"
    assert (package.size_bytes, package.sha256) == (88892, SHA)


def test_the_archives_of_a_source_package_are_told_apart_and_the_rest_is_left() -> None:
    lines = "\n".join(
        f"'http://deb.debian.org/debian/pool/main/l/linux/{file}' {file} 9 SHA256:{SHA}"
        for file in (
            "linux_6.1.176-1.dsc",
            "linux_6.1.176.orig.tar.xz",
            "linux_6.1.176-1.debian.tar.xz",
        )
    )

    packages = parse_printed(lines, source_version="6.1.176-1")

    assert [p.arch for p in packages] == ["source-orig", "source-debian"]
    assert {(p.name, p.version) for p in packages} == {("linux", "6.1.176-1")}


def test_a_source_package_of_another_version_names_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(argv: Sequence[str], *, timeout_s: float) -> process.Completed:
        if "source" in argv:
            return process.Completed(100, b"", f"E: none {timeout_s}")
        return process.Completed(0, b"Package: linux\nVersion: 6.1.192-2\n", "")

    monkeypatch.setattr(process, "run", answer)
    monkeypatch.setattr(aptroot, "KEYRING", tmp_path)

    with pytest.raises(
        BoardError, match=r"no source package linux 6\.1\.176-1 .*6\.1\.192-2.*keeps"
    ):
        resolve_source("linux", "6.1.176-1", suite="bookworm", root=tmp_path)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("has unexpected size (1 != 2). Mirror sync in progress?", "name a lock file"),
        ("Could not connect to 127.0.0.1:9", "check the network and the proxy"),
    ],
)
def test_lists_that_cannot_be_had_are_told_with_advice_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, advice: str
) -> None:
    def answer(argv: Sequence[str], *, timeout_s: float) -> process.Completed:
        fails = "update" in argv
        return process.Completed(100 if fails else 0, b"", f"E: {said}")

    monkeypatch.setattr(process, "run", answer)
    monkeypatch.setattr(aptroot, "KEYRING", tmp_path)

    with pytest.raises(BoardError, match=rf"cannot fetch the package lists .*{advice}"):
        resolve(["x"], arch="riscv64", root=tmp_path, dependencies=False)


@pytest.mark.parametrize(
    "line", [LINE.replace("SHA256", "MD5Sum"), "E: no", LINE.replace(".deb 8", " 8")]
)
def test_what_is_not_understood_is_not_passed_over(line: str) -> None:
    with pytest.raises(BoardError, match="unexpected output"):
        parse_printed(line)


def test_a_lock_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    lock = NO_LOCK.with_part("qemu-x86_64", parse_printed(LINE))
    path = tmp_path / "lock.json"
    path.write_text(lock_text(lock))

    assert read_lock(path) == lock


def _source(kind: str, file: str) -> Package:
    return Package("linux", "6.1.176-1", kind, f"http://x/linux/{file}", 1, SHA)


def test_the_files_of_a_source_package_are_read_back(tmp_path: Path) -> None:
    files = (
        _source("source-orig", "linux_6.1.176.orig.tar.xz"),
        _source("source-debian", "linux_6.1.176-1.debian.tar.xz"),
    )
    lock = NO_LOCK.with_part("kernel-jh7110-6.1-rt-riscv64", files)
    path = tmp_path / "lock.json"
    path.write_text(lock_text(lock))

    assert read_lock(path) == lock


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("source-orig", "linux_6.1.177.orig.tar.xz"),
        ("source-orig", "linux_6.1.176-1.debian.tar.xz"),
        ("source-debian", "linux_6.1.176-2.debian.tar.xz"),
        ("source-debian", "linux_6.1.176-1_amd64.deb"),
    ],
)
def test_another_file_of_a_source_package_is_refused(
    tmp_path: Path, kind: str, file: str
) -> None:
    path = tmp_path / "lock.json"
    path.write_text(lock_text(NO_LOCK.with_part("p", [_source(kind, file)])))

    with pytest.raises(UsageError, match="another package's"):
        read_lock(path)


def test_a_lock_file_does_not_depend_on_the_order_of_resolution() -> None:
    one = Package("a", "1", "all", "http://x/a.deb", 1, SHA)
    two = Package("b", "1", "all", "http://x/b.deb", 1, SHA)

    forth = NO_LOCK.with_part("p", [one, two]).with_part("o", [one])
    back = NO_LOCK.with_part("o", [one]).with_part("p", [two, one])
    assert lock_text(forth) == lock_text(back)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (SHA, "b" * 63, "sha256"),
        ("http://deb", "file://deb", "url"),
        ('"schema": 1', '"schema": 2', "schema"),
        ('"zlib1g"', '"../zlib1g"', "name"),
        ("88892", "-1", "size_bytes"),
        ('"name"', '"nam"', "nam"),
        ("{", "", "JSON"),
    ],
)
def test_a_damaged_lock_file_is_refused_by_key(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    text = lock_text(NO_LOCK.with_part("q", parse_printed(LINE)))
    assert old in text
    path = tmp_path / "lock.json"
    path.write_text(text.replace(old, new, 1))

    with pytest.raises(UsageError, match=said):
        read_lock(path)


def test_a_missing_lock_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_lock(tmp_path / "none")


def test_a_package_that_the_archive_no_longer_has_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = [
        Package(name, "1.0", "amd64", f"http://x/{name}.deb", 1, SHA)
        for name in ("there", "gone")
    ]

    said = f"E: Failed to fetch {packages[1].url}  404  Not Found [IP: 1]"
    apt_that(monkeypatch, tmp_path, f"echo '{said}' >&2; exit 100")

    with pytest.raises(
        BoardError, match=r"no longer has gone 1\.0 .*rtscope run --bundle.* --upgrade"
    ):
        fetch(packages, tmp_path / "downloads", log=lambda _text: None)


def apt_that(monkeypatch: pytest.MonkeyPatch, place: Path, does: str) -> None:
    """Put a program in the place of apt's that downloads."""
    program = place / "apt-helper"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(aptroot, "HELPER", str(program))


def test_a_download_tells_its_bytes_and_apt_talks_into_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program holds on until the first step was told."""
    told: list[process.Step] = []

    def note(step: process.Step) -> None:
        told.append(step)
        (tmp_path / "seen").touch()

    wait = f"until [ -e {tmp_path}/seen ]; do sleep 0.02; done"
    write = 'echo Get:1; printf 12345 > "$3"'
    apt_that(monkeypatch, tmp_path, f'{write}; {wait}; printf 678 >> "$3"')
    monkeypatch.setattr(process, "WATCH_EVERY_S", 0.02)
    package = Package("a", "1", "all", "http://x/a.deb", 8, SHA)
    (file,) = fetch(
        [package], tmp_path / "downloads", log=lambda _text: None, progress=note
    )

    assert file.read_text() == "12345678"
    assert (tmp_path / aptroot.APT_LOG).read_text() == "Get:1\n"
    assert {(step.about, step.unit) for step in told} == {(8, "bytes")}
    assert (told[-1].done, told[0].done < 8) == (8, True)


def test_a_failed_download_names_the_log_of_apt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt_that(monkeypatch, tmp_path, "echo 'E: no network' >&2; exit 100")
    package = Package("a", "1", "all", "http://x/a.deb", 8, SHA)

    with pytest.raises(BoardError, match=r"E: no network \(apt's log: .*apt\.log\)"):
        fetch([package], tmp_path / "downloads", log=lambda _text: None)


def test_a_pattern_without_a_match_is_told_with_the_packages_like_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = "linux-source-6.12 linux-source-7.4 linux-source-7.10 linux-source"

    def apt(argv: Sequence[str], *, timeout_s: float) -> process.Completed:
        assert timeout_s > 0
        names = there if argv[-1] == "linux-source-" else ""
        return process.Completed(0, names.encode(), "")

    monkeypatch.setattr(process, "run", apt)
    monkeypatch.setattr(aptroot, "KEYRING", tmp_path)

    with pytest.raises(
        BoardError,
        match=r"like linux-source-7\\.3 "
        r"\(it has linux-source-6\.12, linux-source-7\.4, linux-source-7\.10\)",
    ):
        aptroot.resolve(
            [r"linux-source-7\.3"], arch="amd64", root=tmp_path, dependencies=False
        )


def test_a_package_that_was_fetched_is_not_fetched_again(tmp_path: Path) -> None:
    file = tmp_path / f"{SHA}.deb"
    file.touch()

    package = Package("a", "1", "all", "http://x/a.deb", 1, SHA)
    assert fetch([package], tmp_path, log=lambda _text: None) == [file]


def test_an_archive_that_does_not_answer_is_told_before_any_package_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, body in (
        # As apt does: without the setting a failure is only a warning.
        ("apt-get", 'grep -q "Error-Mode .any" "$APT_CONFIG" && echo "E: no" >&2 &&'),
        ("apt-config", "true ||"),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{body} exit 1\n")
        (programs / name).chmod(0o755)
    keyring = tmp_path / "keyring"
    keyring.touch()
    monkeypatch.setattr(aptroot, "KEYRING", keyring)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    with pytest.raises(
        BoardError, match=r"package lists of http.*E: no.*check the network"
    ):
        resolve(["qemu"], arch="amd64", root=tmp_path / "root", dependencies=True)
