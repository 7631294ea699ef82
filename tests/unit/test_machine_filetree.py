"""Files are read exactly, and nothing outside a captured tree is ever touched."""

import os
from pathlib import Path

from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import MAX_FILE_BYTES, Denied, Missing, read


def test_a_file_is_read_to_its_last_byte(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cmdline").write_bytes(b"quiet\n\0")

    assert read(FileReader(tmp_path), "/proc/cmdline") == b"quiet\n\0"


def test_a_file_that_says_its_size_is_0_is_read_until_its_end() -> None:
    assert Path("/proc/self/status").stat().st_size == 0

    content = read(FileReader(), "/proc/self/status")

    assert isinstance(content, bytes)
    assert content.startswith(b"Name:")
    assert content.endswith(b"\n")


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (MAX_FILE_BYTES + 1))

    assert read(FileReader(tmp_path), "/large") == b"x" * MAX_FILE_BYTES


def test_missing_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    answers = FileReader(tmp_path).read_many(["/empty", "/none", "/empty/below"])

    assert answers == {"/empty": b"", "/none": Missing(), "/empty/below": Missing()}


def test_what_the_system_refuses_is_denied_with_its_word() -> None:
    # It can only be written: sysfs refuses to open it for reading, even to root.
    path = "/sys/devices/system/clocksource/clocksource0/unbind_clocksource"

    assert read(FileReader(), path) == Denied("Permission denied")


def test_an_error_while_reading_is_denied_with_the_systems_word() -> None:
    # The memory of a process, at address 0, gives EIO.
    assert read(FileReader(), "/proc/self/mem") == Denied("Input/output error")


def test_a_fifo_a_directory_and_a_device_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    tree = FileReader(tmp_path)

    assert read(tree, "/fifo") == Denied("not a regular file")
    assert read(tree, "/directory") == Denied("not a regular file")
    assert read(FileReader(), "/dev/zero") == Denied("not a regular file")


def test_a_pattern_stands_for_every_match_in_order(tmp_path: Path) -> None:
    for name in ("cpu1", "cpu0", "cpufreq", "cpu10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "online").write_text(name)

    answers = FileReader(tmp_path).read_many(["/cpu[0-9]*/online"])

    assert answers == {
        "/cpu0/online": b"cpu0",
        "/cpu1/online": b"cpu1",
        "/cpu10/online": b"cpu10",
    }
    assert list(answers) == ["/cpu0/online", "/cpu1/online", "/cpu10/online"]


def test_a_pattern_matches_in_any_component_but_not_across_them(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "deep").write_text("deep")
    (tmp_path / "a" / "flat").write_text("flat")
    tree = FileReader(tmp_path)

    assert tree.read_many(["/*/flat"]) == {"/a/flat": b"flat"}
    assert tree.read_many(["/*/deep"]) == {"/*/deep": Missing()}
    assert tree.read_many(["/a/*/d*"]) == {"/a/b/deep": b"deep"}


def test_a_pattern_leaves_out_hidden_files(tmp_path: Path) -> None:
    (tmp_path / ".hidden").touch()

    assert FileReader(tmp_path).read_many(["/*"]) == {"/*": Missing()}
    assert FileReader(tmp_path).read_many(["/.h*"]) == {"/.hidden": b""}


def test_a_match_without_the_file_below_it_is_no_match(tmp_path: Path) -> None:
    (tmp_path / "cpu0").mkdir()

    assert FileReader(tmp_path).read_many(["/cpu*/online"]) == {
        "/cpu*/online": Missing()
    }


def test_an_absolute_link_means_a_path_of_the_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "etc").mkdir(parents=True)
    (tree / "etc" / "os-release").symlink_to("/usr/lib/os-release")
    (tree / "usr" / "lib").mkdir(parents=True)
    (tree / "usr" / "lib" / "os-release").write_text("NAME=captured\n")

    assert read(FileReader(tree), "/etc/os-release") == b"NAME=captured\n"


def test_nothing_outside_the_tree_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "absolute").symlink_to(tmp_path / "secret")
    (tree / "relative").symlink_to("../secret")
    (tree / "directory").symlink_to("..")
    reader = FileReader(tree)

    for path in ("/absolute", "/relative", "/directory/secret", "/../secret"):
        assert read(reader, path) == Missing(), path
    assert reader.read_many(["/directory/*/secret"]) == {
        "/directory/*/secret": Missing()
    }


def test_a_link_to_a_directory_of_the_tree_is_followed(tmp_path: Path) -> None:
    (tmp_path / "devices" / "dmi").mkdir(parents=True)
    (tmp_path / "devices" / "dmi" / "vendor").write_text("V")
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "dmi0").symlink_to("../devices/dmi")
    reader = FileReader(tmp_path)

    assert read(reader, "/class/dmi0/vendor") == b"V"
    assert reader.read_many(["/class/dmi*/vendor"]) == {"/class/dmi0/vendor": b"V"}


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert read(FileReader(tmp_path), "/a") == Denied(
        "Too many levels of symbolic links"
    )


def test_this_machines_links_are_followed() -> None:
    mounts = read(FileReader(), "/proc/mounts")

    assert isinstance(mounts, bytes)
    assert b"/proc" in mounts
