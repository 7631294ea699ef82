"""Which packages a part is made of: a lock file's, last time's, or the newest."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rtscope.boards.parts.aptroot import NO_LOCK, Package, parse_printed, read_lock
from rtscope.boards.parts.buildcontext import (
    BuildContext,
    cached_lock,
    packages_of,
    remember,
)
from rtscope.boards.parts.cache import locked
from rtscope.host.errors import BoardError

PART = "userland-riscv64"
SHIPPED = Path(__file__).parents[2] / "setup" / "jh7110.lock"


def _busybox(version: str) -> tuple[Package, ...]:
    file = f"busybox_{version}_riscv64.deb"
    return parse_printed(f"'http://x/pool/{file}' {file} 9 SHA256:{'0' * 64}")


def _newest(_root: Path) -> tuple[Package, ...]:
    return _busybox("3")


def _no_archive(_root: Path) -> tuple[Package, ...]:
    raise BoardError("the archive does not answer")


def _version(packages: Sequence[Package]) -> str:
    (one,) = packages
    return one.version


def test_what_a_lock_file_told_is_known_without_it_later(tmp_path: Path) -> None:
    lock = NO_LOCK.with_part(PART, _busybox("1"))
    told = BuildContext(cache=tmp_path, agent=Path, lock=lock)
    later = BuildContext(cache=tmp_path, agent=Path)

    with locked(tmp_path, log=lambda _text: None):
        assert _version(packages_of(told, PART, _no_archive)) == "1"
        assert _version(packages_of(later, PART, _no_archive)) == "1"


def test_what_the_cache_knows_stays_whatever_a_lock_file_says(tmp_path: Path) -> None:
    lock = NO_LOCK.with_part(PART, _busybox("1"))
    told = BuildContext(cache=tmp_path, agent=Path, lock=lock)
    later = BuildContext(cache=tmp_path, agent=Path)

    with locked(tmp_path, log=lambda _text: None):
        assert _version(packages_of(later, PART, _newest)) == "3"
        assert _version(packages_of(told, PART, _no_archive)) == "1"
        assert _version(packages_of(later, PART, _no_archive)) == "3"


def test_without_the_lock_of_the_cache_nothing_is_kept(tmp_path: Path) -> None:
    remember(tmp_path, NO_LOCK)
    lock = NO_LOCK.with_part(PART, _busybox("1"))
    told = BuildContext(cache=tmp_path, agent=Path, lock=lock, may_build=False)

    packages_of(told, PART, _no_archive)

    assert cached_lock(tmp_path).parts == {}


@pytest.mark.parametrize(
    "part", ["kernel-debian-6.12-riscv64", "qemu-riscv64", "userland-riscv64"]
)
def test_the_shipped_lock_file_has_all_parts_of_the_board_of_the_tests(
    part: str,
) -> None:
    assert read_lock(SHIPPED).parts[part]
