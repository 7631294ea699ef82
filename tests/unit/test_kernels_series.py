"""Series of patches: all or nothing, and why one does not apply."""

import lzma
from pathlib import Path

import pytest

from fakes.fakelinux import make_tree
from rtscope.boards.kernels.publishers import published, require_there
from rtscope.boards.kernels.tree import (
    apply_series,
    other_version,
    read_series,
    try_series,
)
from rtscope.host.errors import KernelError, UsageError

GOOD = """\
From 1234 Mon Sep 17 00:00:00 2001
Subject: [PATCH 1/2] init: Return one,
 as everybody expects

--- a/init/main.c
+++ b/init/main.c
@@ -1,4 +1,4 @@
 int main(void)
 {
-\treturn 0;
+\treturn 1;
 }
diff --git a/init/new.c b/init/new.c
new file mode 100644
--- /dev/null
+++ b/init/new.c
@@ -0,0 +1 @@
+/* new */
"""

SECOND = """\
Subject: [PATCH 2/2] init: Return two

--- a/init/main.c
+++ b/init/main.c
@@ -1,4 +1,4 @@
 int main(void)
 {
-\treturn 1;
+\treturn 2;
 }
"""


def _series(folder: Path, *patches: str, base: str | None = None) -> Path:
    folder.mkdir()
    names = []
    for number, text in enumerate(patches):
        (folder / f"{number}.patch").write_text(text)
        names.append(f"{number}.patch")
    head = f"# base: {base}\n" if base else "# what quilt calls a comment\n"
    (folder / "series").write_text(head + "\n".join(names) + "\n")
    return folder


def _content(tree: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(tree)): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file()
    }


def test_a_series_is_applied_in_its_order(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    series = read_series(_series(tmp_path / "s", GOOD, SECOND))

    apply_series(series, tree)

    assert "return 2;" in (tree / "init/main.c").read_text()
    assert (tree / "init/new.c").read_text() == "/* new */\n"
    assert series.patches[0].subject == "init: Return one, as everybody expects"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["linux", "s"]


def test_a_reject_names_file_hunk_and_reason_and_the_tree_is_as_it_was(
    tmp_path: Path,
) -> None:
    tree = make_tree(tmp_path / "linux")
    before = _content(tree)
    broken = SECOND.replace("return 1;", "return 7;")
    series = read_series(_series(tmp_path / "s", GOOD, broken))

    with pytest.raises(
        KernelError,
        match=r"patch 2 of 2 .* 1\.patch: init/main\.c, hunk 1: the lines to change",
    ):
        apply_series(series, tree)

    assert _content(tree) == before


def test_the_wrong_base_is_named_with_the_one_that_was_found(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux", patchlevel=13)
    series = read_series(_series(tmp_path / "s", SECOND, base="6.12.1"))

    rejected = try_series(series, tree)

    assert rejected is not None
    assert "made for Linux 6.12.1, this is 6.13.1" in rejected.reason


def test_a_patch_that_is_in_the_tree_already_is_told(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    series = read_series(_series(tmp_path / "s", GOOD))
    apply_series(series, tree)

    rejected = try_series(series, tree)

    assert rejected is not None
    assert rejected.reason == "it is applied already"


def test_a_file_that_the_tree_lacks_is_told(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    series = read_series(_series(tmp_path / "s", SECOND.replace("main.c", "gone.c")))

    rejected = try_series(series, tree)

    assert rejected is not None
    assert (rejected.file, rejected.hunk) == ("init/gone.c", None)
    assert rejected.reason == "this tree has no such file"


def test_trying_changes_nothing(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    before = _content(tree)

    assert try_series(read_series(_series(tmp_path / "s", GOOD)), tree) is None
    assert _content(tree) == before


def test_a_patch_that_leads_out_of_the_tree_is_refused(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    outside = SECOND.replace("init/main.c", "../../out.c")

    with pytest.raises(KernelError, match="outside of the tree"):
        try_series(read_series(_series(tmp_path / "s", outside)), tree)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no patch"),
        ("gone.patch\n", "cannot read .*gone.patch"),
        ("a.patch -R\n", "a.patch: unknown option '-R'"),
        ("a.patch.xz\n", r"a.patch.xz: is packed: unpack it first \(xz -d\)"),
    ],
)
def test_a_series_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "series").write_text(text)
    (tmp_path / "a.patch.xz").write_bytes(lzma.compress(GOOD.encode()))

    with pytest.raises(UsageError, match=said):
        read_series(tmp_path)


def test_a_series_that_is_not_there_says_what_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no series of patches 'x': .*riscv-6\.1-rt"):
        read_series(tmp_path / "gone", name="x")
    with pytest.raises(UsageError, match=r"^x: a folder of patches needs a file 'ser"):
        read_series(tmp_path, name="x")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"hello\n", "the file contains no patch"),
        (b"", "the file contains no patch"),
        (SECOND.replace("\n", "\r\n").encode(), r"line ends of DOS"),
        (
            GOOD.replace(" {\n", "", 1).encode(),
            "corrupt patch at line 12: the line count of a hunk is wrong",
        ),
    ],
)
def test_a_file_that_is_no_patch_of_this_tree_is_told_why(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    tree = make_tree(tmp_path / "linux")
    (tmp_path / "a.patch").write_bytes(content)

    rejected = try_series(read_series(tmp_path / "a.patch"), tree)

    assert rejected is not None
    assert reason in rejected.reason


def test_a_patch_may_change_a_mode_or_bring_an_empty_file(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "linux")
    patch = (
        "diff --git a/scripts/compile.sh b/scripts/compile.sh\n"
        "old mode 100644\nnew mode 100755\n"
        "diff --git a/init/empty b/init/empty\n"
        "new file mode 100644\nindex 0000000..e69de29\n"
    )

    apply_series(read_series(_series(tmp_path / "s", patch)), tree)

    assert (tree / "scripts/compile.sh").stat().st_mode & 0o111
    assert (tree / "init/empty").read_bytes() == b""


def test_a_series_that_applies_to_another_version_than_its_own_says_so(
    tmp_path: Path,
) -> None:
    series = read_series(_series(tmp_path / "s", GOOD, base="6.12.9"))

    assert other_version(series, "6.12.1") == "made for Linux 6.12.9, this is 6.12.1"
    assert other_version(series, "6.12.9") == ""


def test_the_digest_follows_order_and_content(tmp_path: Path) -> None:
    one = read_series(_series(tmp_path / "a", GOOD, SECOND)).digest()
    two = read_series(_series(tmp_path / "b", SECOND, GOOD)).digest()

    assert one == read_series(_series(tmp_path / "c", GOOD, SECOND)).digest()
    assert one != two


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("linux-5.15.49.tar.xz", "kernel/v5.x/"),
        ("linux-6.6", "kernel/v6.x/"),
        ("patch-5.15-rt17.patch", "projects/rt/5.15/"),
        ("patches-6.6.21-rt26.tar.gz", "projects/rt/6.6/"),
        ("patch-5.15.49", "kernel/v5.x/"),
    ],
)
def test_a_file_that_is_missing_is_named_with_its_publisher(
    tmp_path: Path, name: str, place: str
) -> None:
    with pytest.raises(UsageError, match="its maker publishes it in") as caught:
        require_there(tmp_path / name)

    assert str(tmp_path / name) in str(caught.value)
    assert place in str(caught.value)


@pytest.mark.parametrize("name", ["mine.patch", "linux-x.tar.xz", "linux-6.6/../x"])
def test_a_file_of_an_unknown_maker_is_only_named(name: str) -> None:
    assert published(name) == ""


def test_a_patch_of_a_series_that_is_missing_is_named_with_its_publisher(
    tmp_path: Path,
) -> None:
    (tmp_path / "series").write_text("patch-5.15-rt17.patch\n")

    with pytest.raises(
        UsageError, match=r"patch-5\.15-rt17\.patch: no such file .*rt/"
    ):
        read_series(tmp_path)
