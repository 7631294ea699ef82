"""From a recipe to a built part: a tree that builds in no time, and what goes wrong."""

import errno
import hashlib
import io
import os
import subprocess
import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO

import pytest

from fakes.fakelinux import make_programs, make_recipe
from rtscope.boards.kernels import build, sourcekernel
from rtscope.boards.kernels.build import (
    BuiltKernel,
    deb_name,
    first_error,
    write_deb,
    write_tar,
)
from rtscope.boards.kernels.recipe import LINES, Recipe, find_recipe, fragments_of
from rtscope.boards.kernels.source import Origin, find_origin
from rtscope.boards.kernels.sourcekernel import (
    check_configurations,
    configured,
    kernel_part,
)
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import all_parts, locked
from rtscope.host.errors import KernelError, UsageError

RT = "CONFIG_EXPERT=y\nCONFIG_PREEMPT_RT=y\n"


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", make_programs(tmp_path / "bin"))


def _build_context(tmp_path: Path, *, cache: str = "cache") -> BuildContext:
    return BuildContext(cache=tmp_path / cache, agent=Path)


def _recipe(folder: Path, wanted: str = RT, *, size: str = "virtual") -> Recipe:
    folder.mkdir(exist_ok=True)
    return find_recipe(str(make_recipe(folder, wanted)), size=size)


def _build(context: BuildContext, recipe: Recipe) -> str:
    with locked(context.cache, log=context.log):
        part = kernel_part(context, recipe)
    return str(part.manifest["files"]["kernel"]["sha256"])


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_kernel_wherever_it_is_built(
    tmp_path: Path,
) -> None:
    one = _build(_build_context(tmp_path, cache="one"), _recipe(tmp_path / "a"))
    two = _build(_build_context(tmp_path, cache="two"), _recipe(tmp_path / "b"))

    assert one == two
    assert len(all_parts(tmp_path / "one")) == 1


@pytest.mark.slow
def test_lines_of_a_campaign_come_after_all_fragments(tmp_path: Path) -> None:
    recipe, context = _recipe(tmp_path / "a"), _build_context(tmp_path)
    ordinary = replace(recipe, lines=("CONFIG_PREEMPT_RT=n",))

    with locked(context.cache, log=context.log):
        assert configured(context, recipe).values().get("PREEMPT_RT") == "y"
        assert "PREEMPT_RT" not in configured(context, ordinary).values()
    assert _build(context, recipe) != _build(context, ordinary)


def test_the_last_line_of_a_symbol_counts(tmp_path: Path) -> None:
    lines = (
        "CONFIG_SMP=y",
        "CONFIG_PREEMPT_RT=y",
        "CONFIG_SMP=n",
        "CONFIG_PREEMPT_RT=n",
    )
    recipe = replace(_recipe(tmp_path / "a"), lines=lines)

    assert fragments_of(recipe)[LINES] == (
        "# CONFIG_SMP is not set\n# CONFIG_PREEMPT_RT is not set\n"
    )
    context = _build_context(tmp_path)
    with locked(context.cache, log=context.log):
        assert "PREEMPT_RT" not in configured(context, recipe).values()


@pytest.mark.slow
def test_all_configurations_are_checked_before_a_kernel_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, context = _recipe(tmp_path / "a"), _build_context(tmp_path)
    recipes = {
        "base": recipe,
        "rt alone": replace(recipe, lines=("CONFIG_EXPERT=n",)),
        "ordinary": replace(recipe, lines=("CONFIG_PREEMPT_RT=n",)),
        "slip": replace(recipe, lines=("CONFIG_NO_SUCH_THING=y",)),
    }
    unpacked = []

    def find_counted(context: BuildContext, recipe: Recipe) -> Origin:
        origin = find_origin(context, recipe)

        def unpack(work: Path) -> None:
            unpacked.append(work)
            origin.unpack(work)

        return replace(origin, unpack=unpack)

    monkeypatch.setattr(sourcekernel, "find_origin", find_counted)

    with pytest.raises(KernelError) as refused:
        check_configurations(context, recipes)

    said = str(refused.value)
    assert "rt alone: kbuild did not accept" in said
    assert "slip: kbuild did not accept" in said
    assert "base" not in said
    assert "ordinary" not in said
    assert len(unpacked) == 1
    assert list((tmp_path / "cache/parts").iterdir()) == []


@pytest.mark.slow
def test_cells_of_one_kernel_are_configured_once(tmp_path: Path) -> None:
    recipe, context = _recipe(tmp_path / "a"), _build_context(tmp_path)
    said: list[str] = []
    other = replace(recipe, lines=("CONFIG_PREEMPT_RT=n",))

    check_configurations(
        replace(context, log=said.append),
        {"base": recipe, "nohz=off": recipe, "ordinary": other},
    )

    assert "configuring 2 kernels to check the settings" in said


@pytest.mark.slow
def test_what_is_built_is_not_configured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, context = _recipe(tmp_path / "a"), _build_context(tmp_path)
    _build(context, recipe)
    monkeypatch.setattr(build, "configure", None)

    check_configurations(context, {"base": recipe})


@pytest.mark.slow
def test_what_else_a_machine_has_makes_no_other_kernel(tmp_path: Path) -> None:
    one = _build(_build_context(tmp_path, cache="one"), _recipe(tmp_path / "a"))
    for name in ("rustc", "pahole", "libc"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\necho 109500\n")
        program.chmod(0o755)
    two = _build(_build_context(tmp_path, cache="two"), _recipe(tmp_path / "b"))

    assert one == two


@pytest.mark.slow
def test_a_built_kernel_is_found_again_and_the_users_tree_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, recipe = _build_context(tmp_path), _recipe(tmp_path / "a")
    before = sorted(str(p) for p in (tmp_path / "a" / "linux").rglob("*"))

    digest = _build(context, recipe)
    monkeypatch.setattr(build, "compile_kernel", None)

    assert _build(context, recipe) == digest
    assert sorted(str(p) for p in (tmp_path / "a" / "linux").rglob("*")) == before


@pytest.mark.slow
def test_a_tree_that_was_built_in_place_is_built_from_a_clean_copy(
    tmp_path: Path,
) -> None:
    recipe = _recipe(tmp_path / "a")
    (tmp_path / "a/linux/.config").write_text("CONFIG_OLD=y\n")

    assert len(_build(_build_context(tmp_path), recipe)) == 64
    assert (tmp_path / "a/linux/.config").read_text() == "CONFIG_OLD=y\n"


def test_preempt_rt_without_expert_stops_the_build_and_names_what_is_missing(
    tmp_path: Path,
) -> None:
    recipe = _recipe(tmp_path / "a", "CONFIG_PREEMPT_RT=y\n")

    with pytest.raises(KernelError, match=r"PREEMPT_RT=y .* needs EXPERT, which is n"):
        _build(_build_context(tmp_path), recipe)

    assert all_parts(tmp_path / "cache") == []


def test_preempt_rt_of_a_users_whole_configuration_is_not_lost_in_silence(
    tmp_path: Path,
) -> None:
    recipe = make_recipe(tmp_path, "CONFIG_SMP=y\n")
    recipe.write_text(recipe.read_text().replace('"allnoconfig"', '"./whole"', 1))
    (tmp_path / "whole").write_text("CONFIG_PREEMPT_RT=y\nCONFIG_NO_SUCH_THING=y\n")

    with pytest.raises(
        KernelError, match=r"PREEMPT_RT=y \(of \./whole\) became n: needs EXPERT"
    ):
        _build(_build_context(tmp_path), find_recipe(str(recipe)))


def test_what_a_users_whole_configuration_loses_is_counted_and_no_error(
    tmp_path: Path,
) -> None:
    recipe = make_recipe(tmp_path, RT)
    recipe.write_text(recipe.read_text().replace('"allnoconfig"', '"./whole"', 1))
    (tmp_path / "whole").write_text("CONFIG_SMP=y\nCONFIG_NO_SUCH_THING=y\n")
    said: list[str] = []
    context = BuildContext(cache=tmp_path / "cache", agent=Path, log=said.append)

    assert len(_build(context, find_recipe(str(recipe)))) == 64
    assert (
        "./whole: 1 of its 2 settings are off in this kernel: the source or a "
        "fragment turns them off: NO_SUCH_THING"
    ) in said


def test_a_symbol_that_does_not_exist_gets_the_near_ones(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path / "a", f"{RT}CONFIG_NO_SUCH_THING=y\n")

    with pytest.raises(KernelError, match=r"NO_SUCH_THING.*has no such symbol"):
        _build(_build_context(tmp_path), recipe)


@pytest.mark.slow
def test_a_configuration_is_had_without_building(tmp_path: Path) -> None:
    context, recipe = _build_context(tmp_path), _recipe(tmp_path / "a")

    with locked(context.cache, log=context.log):
        found = configured(context, recipe)

    assert found.values()["PREEMPT_RT"] == "y"
    assert "PREEMPT_RT" in found.names["RT_MUTEXES"]


@pytest.mark.slow
def test_a_failed_build_shows_the_first_error_keeps_its_log_and_leaves_no_part(
    tmp_path: Path,
) -> None:
    recipe = _recipe(tmp_path / "a")
    (tmp_path / "a/linux/init/main.c").write_text("\n#error not finished\n")

    with pytest.raises(KernelError, match=r"init/main\.c:2:2: error: .*my\S*\.log"):
        _build(_build_context(tmp_path), recipe)

    assert list((tmp_path / "cache/parts").iterdir()) == []
    assert (
        "CC      init/main.o"
        in (tmp_path / "cache/logs/kernel-my-x86_64.log").read_text()
    )


def test_an_interrupted_build_leaves_no_half_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = _recipe(tmp_path / "a")

    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "_follow", interrupt)

    with pytest.raises(KeyboardInterrupt):
        _build(_build_context(tmp_path), recipe)
    assert list((tmp_path / "cache/parts").iterdir()) == []


def test_a_missing_compiler_is_told_with_the_package_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = _recipe(tmp_path / "a")
    monkeypatch.setenv("PATH", "")

    with pytest.raises(KernelError, match=r"x86_64-linux-gnu-gcc.*apt install gcc-x86"):
        build.check_machine(recipe, where=tmp_path)


def test_what_unpacks_the_source_is_told_before_the_source_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = _recipe(tmp_path / "a")
    (tmp_path / "bin/xz").unlink(missing_ok=True)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    with pytest.raises(
        KernelError, match=r"needs .*\bxz: install .*apt install .* xz-utils\)"
    ):
        build.check_machine(recipe, where=tmp_path)


def test_a_configuration_is_not_tried_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, recipe = _build_context(tmp_path), _recipe(tmp_path / "a")
    monkeypatch.setenv("PATH", "")

    with (
        locked(context.cache, log=context.log),
        pytest.raises(KernelError, match="install them"),
    ):
        configured(context, recipe)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('board = "pc"', 'board = "pcx"'), "no such board: 'pcx'; did you mean 'pc'"),
        (
            ('board = "pc"', 'board = "jh7110"'),
            "for x86_64 does not boot on .* riscv64",
        ),
    ],
)
def test_a_kernel_that_cannot_boot_on_its_board_is_not_built(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    recipe = make_recipe(tmp_path, RT)
    recipe.write_text(recipe.read_text().replace(*change))

    for do in (kernel_part, configured):
        with pytest.raises(UsageError, match=said):
            do(_build_context(tmp_path), find_recipe(str(recipe)))


def test_a_full_disk_is_told_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(build.FREE_BYTES, "virtual", 1 << 60)

    with pytest.raises(KernelError, match="GB free, building my needs"):
        _build(_build_context(tmp_path), _recipe(tmp_path / "a"))


@pytest.mark.slow
def test_a_disk_that_is_full_is_told_where_no_program_of_the_build_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = _recipe(tmp_path / "a")
    (tmp_path / "a/linux/scripts/compile.sh").write_text("exit 1\n")
    monkeypatch.setattr(build, "FULL_BYTES", 1 << 60)

    with pytest.raises(KernelError, match=r"Error 1.*; the disk of .* is full \("):
        _build(_build_context(tmp_path), recipe)


def test_a_compiler_that_does_not_work_is_told(tmp_path: Path) -> None:
    gcc = tmp_path / "bin/x86_64-linux-gnu-gcc"
    gcc.write_text("#!/bin/sh\necho no such licence >&2\nexit 3\n")

    with pytest.raises(KernelError, match=r"gcc --version failed: no such licence"):
        _build(_build_context(tmp_path), _recipe(tmp_path / "a"))


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (
            "a\nmm/x.c:12:3: error: no y\nmm/z.c:1:1: error: w\n",
            "mm/x.c:12:3: error: no y",
        ),
        ("mm/x.c:1:10: fatal error: a.h: No\n", "mm/x.c:1:10: fatal error: a.h: No"),
        (
            "cc1: fatal: write: No space left on device\nmake: *** [a] Error 1\n",
            "cc1: fatal: write: No space left on device",
        ),
        (
            "ld: x.o: undefined reference to `f'\nmake: *** [vmlinux] Error 1\n",
            "ld: x.o: undefined reference to `f'",
        ),
        ("make[2]: *** [a.o] Error 1\n", "make[2]: *** [a.o] Error 1"),
        (
            "W: no offline builds (socat not found)\nmake: *** No rule to make 'x'.\n",
            "make: *** No rule to make 'x'.",
        ),
        ("all is well\n", ""),
    ],
)
def test_the_first_error_of_a_log_is_found(log: str, error: str) -> None:
    assert first_error(log) == error


# --- packing ---------------------------------------------------------------------


def _kernel(folder: Path) -> BuiltKernel:
    folder.mkdir()
    for name in ("image", "config", "symbols"):
        (folder / name).write_text(name)
    with tarfile.open(folder / "modules", "w") as tar:
        member = tarfile.TarInfo("lib/modules/6.12.1/a.ko")
        member.size = 2
        tar.addfile(member, io.BytesIO(b"ko"))
    return BuiltKernel(
        name="jh7110-6.12-rt-board",
        title="Linux for tests",
        release="6.12.1",
        arch="riscv64",
        digest="abcdef0123",
        image=folder / "image",
        config=folder / "config",
        symbols=folder / "symbols",
        modules=folder / "modules",
        device_trees=None,
    )


def test_two_archives_of_a_kernel_are_the_same_and_name_the_digest_of_each_file(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        write_tar(_kernel(tmp_path / name), tmp_path / f"{name}.tar.gz")

    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        names = tar.getnames()
        sums = tar.extractfile("SHA256SUMS")
        assert sums is not None
        image = hashlib.sha256(b"image").hexdigest()
        assert f"{image}  boot/vmlinuz-6.12.1\n" in sums.read().decode()
    assert names == sorted(names)
    assert "usr/lib/modules/6.12.1/a.ko" in names


def test_a_package_that_cannot_be_written_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = _kernel(tmp_path / "a")
    to = tmp_path / "to"
    to.mkdir()

    def full(_files: object, out: IO[bytes]) -> None:
        out.write(b"some")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(build, "_write_tar", full)
    monkeypatch.setattr(build, "_write_control", lambda *_a, **_k: full({}, BytesIO()))

    for write, file in ((write_tar, to / "k.tar.gz"), (write_deb, to / "k.deb")):
        with pytest.raises(KernelError, match=rf"{file}: No space left on device"):
            write(kernel, file)
    assert list(to.iterdir()) == []


def test_a_package_has_a_name_that_debian_allows_and_scripts_of_its_release(
    tmp_path: Path,
) -> None:
    kernel = replace(_kernel(tmp_path / "a"), release="6.12.1-My_Board")
    file = tmp_path / deb_name(kernel)
    write_deb(kernel, file)
    subprocess.run(["dpkg-deb", "-e", file, tmp_path / "control"], check=True)

    control = (tmp_path / "control/control").read_text()
    assert "Package: linux-image-6.12.1-my-board\n" in control
    assert "Depends: kmod\n" in control
    assert "\ndepmod 6.12.1-My_Board\n" in (tmp_path / "control/postinst").read_text()
    # What depmod wrote must not keep a folder of a kernel that is gone.
    removed = (tmp_path / "control/postrm").read_text()
    assert "rm -f /lib/modules/6.12.1-My_Board/modules.*\n" in removed
    for script in ("postinst", "postrm"):
        subprocess.run(["sh", "-n", tmp_path / "control" / script], check=True)


def test_a_debian_package_says_what_it_is_and_is_the_same_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        kernel = _kernel(tmp_path / name)
        write_deb(kernel, tmp_path / f"{name}.deb")

    info = subprocess.run(
        ["dpkg-deb", "--info", tmp_path / "a.deb"], capture_output=True, check=True
    ).stdout.decode()
    files = subprocess.run(
        ["dpkg-deb", "--contents", tmp_path / "a.deb"], capture_output=True, check=True
    ).stdout.decode()
    assert (tmp_path / "a.deb").read_bytes() == (tmp_path / "b.deb").read_bytes()
    assert "Package: linux-image-6.12.1\n" in info
    assert "Architecture: riscv64" in info
    assert "root/root" in files
    assert "./boot/vmlinuz-6.12.1" in files
    assert deb_name(kernel) == "linux-image-6.12.1_6.12.1+rtscope.abcdef01_riscv64.deb"


def test_without_tuxmake_building_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(KernelError, match=r"tuxmake.*: pipx inject rtscope tuxmake"):
        build.check_programs(_recipe(tmp_path / "a"))


def test_a_missing_header_is_named_before_the_source_is_unpacked(
    tmp_path: Path,
) -> None:
    gcc = tmp_path / "bin/gcc"
    gcc.write_text("#!/bin/sh\ncase $* in *libelf.h*) exit 1;; esac\necho 'fake 12'\n")

    with pytest.raises(KernelError, match=r"needs libelf\.h: .*libelf-dev"):
        build.check_machine(_recipe(tmp_path / "a"), where=tmp_path)
