"""The files of a program on a board: directories, links, scripts, packages, bounds."""

import os
import platform
import shutil
import socket
from pathlib import Path

import pytest

from rtscope.boards.catalogue import Arch, get_arch, get_board
from rtscope.boards.parts.initrd import File, Folder, Link, pack, unpack
from rtscope.boards.parts.program import program_of
from rtscope.boards.parts.programtree import (
    MAX_ENTRIES,
    ProgramTree,
    entries_of,
    put_all,
    put_merged_links,
    tree_for,
)
from rtscope.host.errors import BoardError, UsageError

ROOM = 1 << 20
ENV = Path(shutil.which("env") or "/usr/bin/env").resolve()


@pytest.fixture
def arch() -> Arch:
    try:
        return get_arch(platform.machine())
    except KeyError:
        pytest.skip("no board is of this machine")


def tree(**entries: File | Link | Folder) -> ProgramTree:
    made = ProgramTree(64 << 20)
    put_all(made, {path.replace("_", "/"): entry for path, entry in entries.items()})
    return made


def test_a_directory_keeps_its_links_and_which_files_run(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "control").write_bytes(b"x")
    (tmp_path / "bin" / "control").chmod(0o700)
    (tmp_path / "bin" / "alias").symlink_to("../etc/conf")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "conf").write_bytes(b"y")
    (tmp_path / "abs").symlink_to("/etc")

    entries = entries_of(tmp_path, "opt")

    assert entries["opt/bin/control"] == File(b"x", runs=True)
    assert entries["opt/bin/alias"] == Link("../etc/conf")
    assert entries["opt/etc/conf"] == File(b"y")
    assert entries["opt/abs"] == Link("/etc")
    assert entries["opt/etc"] == Folder()
    assert unpack(pack(entries)) == entries


@pytest.mark.parametrize("target", ["../x", "sub/../../x", "../../../etc/passwd"])
def test_a_link_out_of_the_directory_is_refused(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "link").symlink_to(target)

    with pytest.raises(UsageError, match="leads out of"):
        entries_of(folder, "")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(UsageError, match="no regular file"):
        entries_of(tmp_path, "")


def test_a_socket_is_refused_too(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "s"))
        with pytest.raises(UsageError, match="no regular file"):
            entries_of(tmp_path, "")


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*/none: No such file"):
        entries_of(tmp_path / "none", "etc/none")


@pytest.mark.parametrize("place", ["..", "/", "etc/../../x", "a/.."])
def test_a_path_out_of_the_tree_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="the path that the board has"):
        tree().put(place, File(b""))


def test_links_are_followed_as_with_the_tree_as_root() -> None:
    made = tree(usr_lib_x=File(b"1"), lib=Link("/usr/lib"), up=Link("../../usr"))

    assert made.file("lib/x") == File(b"1")
    assert made.file("/up/lib/x") == File(b"1")
    made.put("lib/y", File(b"2"))
    assert made.entries["usr/lib/y"] == File(b"2")


def test_links_in_a_circle_are_refused() -> None:
    made = tree(a=Link("b"), b=Link("a"))

    with pytest.raises(UsageError, match="lead to themselves"):
        made.file("a/x")


def test_a_file_takes_no_place_of_a_directory() -> None:
    with pytest.raises(UsageError, match="a directory on the board"):
        tree(etc=Folder(), etc_conf=File(b"")).put("etc", File(b""))


def test_too_much_is_refused_with_the_bound() -> None:
    made = ProgramTree(ROOM)
    made.put("a", File(bytes(ROOM)))
    made.put("a", File(bytes(ROOM)))  # replaced, not added

    with pytest.raises(UsageError, match="more than 1 MiB"):
        made.put("b", File(b"1"))


def test_too_many_files_are_refused() -> None:
    made = ProgramTree(ROOM)
    made.entries = {str(n): Folder() for n in range(MAX_ENTRIES)}

    with pytest.raises(UsageError, match="100,000 files"):
        made.put("more", Folder())


def test_a_board_has_room_for_a_quarter_of_its_memory() -> None:
    board = get_board("pc")

    assert tree_for(board).most_bytes * 4 == board.memory_bytes


def test_packages_get_the_links_that_their_scripts_would_make() -> None:
    made = tree(usr_bin_sh=File(b"1"), usr_lib_x=File(b""), lib_y=File(b""))

    put_merged_links(made)

    assert made.entries["bin"] == Link("usr/bin")
    assert "sbin" not in made.entries
    assert "lib" not in made.entries  # a directory of its own


def test_packages_find_the_places_that_each_machine_has() -> None:
    made = tree(var_lib_x=File(b"1"))

    put_merged_links(made)

    assert made.real("var/run/daemon.pid") == "run/daemon.pid"
    assert made.has_folder("var/log")
    assert made.file("var/lib/x") == File(b"1")


def test_a_program_in_a_tree_stays_there(arch: Arch) -> None:
    made = tree()
    made.put("opt/app/control", File(ENV.read_bytes(), runs=True))

    program = program_of(["/opt/app/control", "-v"], arch, tree=made)

    assert program.command == ("/opt/app/control", "-v")
    assert "program/opt/app/control" in program.files
    assert any(name.endswith("libc.so.6") for name in program.files)


def test_a_library_of_the_tree_comes_before_that_of_this_computer(arch: Arch) -> None:
    own = next(
        content
        for name, content in program_of([str(ENV)], arch).files.items()
        if name.endswith("libc.so.6")
    )
    made = tree()
    put_all(made, {"opt/libc.so.6": File(own), "lib": Link("opt")})

    program = program_of([str(ENV)], arch, tree=made)

    assert "program/opt/libc.so.6" in program.files
    assert program.libraries == ("/lib",)


def test_a_relative_program_is_taken_from_its_base(arch: Arch, tmp_path: Path) -> None:
    shutil.copy(ENV, tmp_path / "control")

    program = program_of(["./control"], arch, tree=tree(), base=tmp_path)

    assert program.command == ("/control",)


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"#!/usr/bin/env sh\n", ["/usr/bin/sh"]),
        (b"#!/usr/bin/sh -e -u\n", ["/usr/bin/sh", "-e -u"]),
        (b"#! /bin/sh", ["/usr/bin/sh"]),
        (b"#!/usr/bin/env -S sh -e\n", ["/usr/bin/sh", "-e"]),
    ],
)
def test_a_script_runs_by_the_interpreter_of_the_tree(
    arch: Arch, tmp_path: Path, first: bytes, words: list[str]
) -> None:
    script = tmp_path / "run.sh"
    script.write_bytes(first)
    script.chmod(0o755)
    made = tree(usr_bin_sh=File(ENV.read_bytes(), runs=True), bin=Link("usr/bin"))

    program = program_of([str(script), "x"], arch, tree=made)

    assert program.command == (*words, "/run.sh", "x")


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"#!/usr/bin/python3\n", "--package python3-minimal"),
        (b"#!/usr/bin/env perl", "--package perl-base"),
        (b"#!\n", "--package python3-minimal"),
        (b"#!/usr/bin/env\n", "--package coreutils"),
        (b"#!/opt/\xff\xfe", ": give the board its file"),
    ],
)
def test_a_script_without_its_interpreter_names_a_package(
    arch: Arch, tmp_path: Path, first: bytes, said: str
) -> None:
    script = tmp_path / "run"
    script.write_bytes(first)
    script.chmod(0o755)

    with pytest.raises(UsageError, match=f"is a script for .*{said}"):
        program_of([str(script)], arch, tree=tree())


def test_a_library_that_a_program_opens_itself_is_checked(arch: Arch) -> None:
    made = tree()
    needs = ENV.read_bytes().replace(b"libc.so.6\0", b"libc.so.x\0")
    made.put("usr/lib/plugin.so", File(needs))

    with pytest.raises(UsageError, match=r"plugin\.so needs libc\.so\.x"):
        program_of([str(ENV)], arch, tree=made, checked=["usr/lib/plugin.so"])


@pytest.mark.parametrize("archive", [b"", b"070701", pack({"a": File(b"x")})[:120]])
def test_a_damaged_archive_is_refused(archive: bytes) -> None:
    with pytest.raises(BoardError, match="archive of files"):
        unpack(archive)
