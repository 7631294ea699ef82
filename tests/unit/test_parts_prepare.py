"""Files for a virtual board: a part by their contents, or refused with a reason."""

from pathlib import Path

import pytest

from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels import sourcekernel
from rtscope.boards.kernels.recipe import find_recipe
from rtscope.boards.kernels.source import find_origin, part_name
from rtscope.boards.parts import initrd
from rtscope.boards.parts.buildcontext import FILES_ARCHIVE, BuildContext
from rtscope.boards.parts.cache import locked
from rtscope.boards.parts.initrd import files_part, read_files
from rtscope.boards.parts.prepare import is_built
from rtscope.host.errors import UsageError


def test_files_are_known_by_their_names_and_make_one_archive(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine.ko").write_bytes(b"module")
    context = BuildContext(cache=tmp_path / "cache", agent=Path)

    files = read_files([tmp_path / "a" / "mine.ko"])
    with locked(context.cache, log=lambda _text: None):
        part = files_part(context, files)
        other = files_part(context, {"mine.ko": b"another"})

    assert files == {"mine.ko": b"module"}
    assert part.file(FILES_ARCHIVE).read_bytes() == initrd.pack(
        {"files/mine.ko": initrd.File(b"module", runs=True)}
    )
    assert part.digest != other.digest


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "mine.ko" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(b"")

    with pytest.raises(UsageError, match=r"two guest files are called mine\.ko"):
        read_files(paths)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*gone"):
        read_files([tmp_path / "gone"])


def test_files_that_would_fill_the_boards_memory_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)

    with pytest.raises(UsageError, match="exceed 64 MiB"):
        read_files([path])


RECIPE = """
title = "mine"
arch = "x86_64"
board = "pc"
source = { SOURCE }
[size.virtual]
base = "allnoconfig"
"""


def test_a_kernel_is_built_already_or_must_be_or_only_its_source_could_tell(
    tmp_path: Path,
) -> None:
    tarball = f'tarball = "linux.tar.xz", sha256 = "{"a" * 64}"'
    for name, source in {
        "mine": tarball,
        "git": 'git = "https://host/linux.git"',
        "tree": 'directory = "linux"',
    }.items():
        (tmp_path / f"{name}.toml").write_text(RECIPE.replace("SOURCE", source))
    context = BuildContext(cache=tmp_path / "cache", agent=Path)
    recipe = find_recipe(str(tmp_path / "mine.toml"))

    def built(name: str, *config: str) -> bool | None:
        return is_built(get_board("pc"), name, config, context=context)

    before = built(f"{tmp_path}/mine.toml")
    with locked(context.cache, log=lambda _text: None):
        inputs = sourcekernel._inputs(recipe, find_origin(context, recipe))
        context.build(part_name(recipe), inputs, lambda _work: {"release": "6.12"})

    assert before is False
    assert built(f"{tmp_path}/mine.toml") is True
    assert built(f"{tmp_path}/mine.toml", "CONFIG_HZ_100=y") is False
    assert built(f"{tmp_path}/git.toml") is None
    assert built(f"{tmp_path}/tree.toml") is None
    assert built("debian-6.12") is None
    # What a package is made of is not asked for.
    assert built("pc-6.12-rt") is False
