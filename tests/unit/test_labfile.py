"""The file of a lab: its boards, their settings, and its mistakes."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.host.errors import UsageError
from rtscope.measure.campaign.options import Options
from rtscope.verbs.run.labfile import (
    MAX_BOARDS,
    boards_of,
    campaigns_of,
    load_lab,
    read_board,
)

GOOD = """
[[board]]
name = "vf2-1"
target = "ssh:root@192.0.2.7"
tags = ["riscv", "nightly"]
settings = { cpus = "1-3", load = ["idle", "cpu"], storage_dir = "/mnt" }

[[board]]
target = "virtual:jh7110"
tags = ["riscv"]
settings = { kernel = "./Image", seed = 7 }
"""


def lab(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "lab.toml"
    file.write_text(text)
    return file


def test_settings_of_a_board_stand_between_the_file_and_the_options(
    tmp_path: Path,
) -> None:
    campaign = tmp_path / "c.toml"
    campaign.write_text(
        '[target]\nstorage_dir = "/x"\n[[run]]\nload = "os"\ncpus = "0"'
    )
    boards = load_lab(lab(tmp_path, GOOD))

    machine, virtual = campaigns_of(boards, campaign, Options(cpus="2", seed=3))

    assert [one.name for one in boards] == ["vf2-1", "virtual-jh7110"]
    assert (machine.target, machine.storage_dir) == ("ssh:root@192.0.2.7", "/mnt")
    assert (machine.runs[0].loads, machine.runs[0].cpus) == (("idle", "cpu"), (2,))
    assert (machine.seed, virtual.seed) == (None, 3)
    assert virtual.kernels == (str(tmp_path / "Image"),)
    assert (virtual.runs[0].loads, virtual.storage_dir) == (("os",), "/x")


def test_tags_choose_boards_that_have_all_of_them(tmp_path: Path) -> None:
    file = lab(tmp_path, GOOD)

    assert len(load_lab(file, tags="riscv")) == 2
    assert [b.name for b in load_lab(file, tags="riscv, nightly")] == ["vf2-1"]


def test_names_of_addresses_are_small_and_no_two_are_the_same() -> None:
    named = boards_of("ssh:Root@A.b, ssh:root@a-b,local,virtual:pc,virtual:pc")

    assert [one.name for one in named] == [
        *("ssh-root-a-b", "ssh-root-a-b-2", "local", "virtual-pc", "virtual-pc-2")
    ]


@pytest.mark.parametrize(
    "targets",
    [
        *("ssh:a,ssh:root@a", "ssh:A,ssh:x@a", "ssh:a,ssh:ssh://root@a:22"),
        *("local,ssh:localhost", "ssh:root@127.0.0.1,local", "local,ssh:ssh://[::1]"),
        *("ssh:::1,ssh:[::1]", "ssh:ssh://a:23,ssh:ssh://x@a:23"),
    ],
)
def test_a_machine_is_one_whatever_its_address_says_beside_it(targets: str) -> None:
    with pytest.raises(UsageError, match="the same machine"):
        boards_of(targets)


def test_other_machines_may_share_a_gateway() -> None:
    for targets in ("ssh:a,ssh:ssh://a:23", "local,ssh:ssh://localhost:2222"):
        assert len(boards_of(targets)) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "[[board]]: write 1 to 64 tables"),
        ("board = 3", "[[board]]: write 1 to 64 tables"),
        ("[[bord]]", "no such table: 'bord'; did you mean 'board'?"),
        ("[[board]]", "[[board]] number 1: no target"),
        ("[[board]]\ntarget = 3", "number 1 target: 3 is no text"),
        ('[[board]]\ntarget = "ssh:-x"', "number 1 target: 'ssh:-x': write local"),
        ('[[board]]\ntarget = "a,b"', "number 1 target: 'a,b': write local"),
        ('[[board]]\ntarget = "local"\nnam = "x"', "no such key: 'nam'; did you"),
        ('[[board]]\ntarget = "local"\nname = "../x"', "name: '../x': write small"),
        ('[[board]]\ntarget = "local"\nname = ""', "name: '': write small letters"),
        ('[[board]]\ntarget = "local"\nname = "a\\u001b"', "name: 'a\\x1b': write"),
        ('[[board]]\ntarget = "local"\ntags = "x"', "tags: write a list"),
        ('[[board]]\ntarget = "local"\ntags = ["X"]', "tags: 'X': write small"),
        ('[[board]]\ntarget = "local"\nsettings = 3', "settings: 3: write a table"),
        (
            '[[board]]\ntarget = "local"\nsettings = { lod = "idle" }',
            "settings: no such option: 'lod'; did you mean 'load'?",
        ),
        (
            '[[board]]\ntarget = "local"\nsettings = { target = "ssh:x" }',
            "no such option: 'target'",
        ),
        ('[[board]]\ntarget = "local"\n' * 2, "two boards are called local"),
        (
            '[[board]]\nname = "a"\ntarget = "ssh:x"\n'
            '[[board]]\nname = "b"\ntarget = "ssh:x"\n',
            "a and b are the same machine",
        ),
        ('[[board]]\ntarget = "local"\n' * (MAX_BOARDS + 1), "write 1 to 64 tables"),
        ("x = " + "[" * 5000, "nested"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refusal:
        load_lab(lab(tmp_path, text))

    assert why in str(refusal.value)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ('load = "lod"', "lab.toml: board local: settings load: no such load: 'lod'"),
        ("load = 3", "lab.toml: board local: settings load: 3 is no text"),
        ('kernel_release = "x"', "no such option"),
        ("seed = 3", "lab.toml: board local: settings seed: for virtual boards only"),
        ('duration = "200"', "lab.toml: board local: settings duration: 200: no unit"),
    ],
)
def test_a_wrong_setting_is_named_with_its_board(
    settings: str, why: str, tmp_path: Path
) -> None:
    text = f'[[board]]\ntarget = "local"\nsettings = {{ {settings} }}\n'
    with pytest.raises(UsageError, match=r".") as refusal:
        campaigns_of(load_lab(lab(tmp_path, text)), None, Options())

    assert why in str(refusal.value)


def test_an_option_that_was_typed_is_named_as_such(tmp_path: Path) -> None:
    text = '[[board]]\ntarget = "local"\nsettings = { load = "idle" }\n'
    with pytest.raises(UsageError, match=r"board local: --duration: 200: no unit"):
        campaigns_of(load_lab(lab(tmp_path, text)), None, Options(duration="200"))


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=9) | st.booleans(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["name", "target", "tags", "settings"]), inner
            )
        ),
        max_leaves=9,
    )
)
def test_no_document_is_more_than_refused(value: object) -> None:
    where = "lab.toml: [[board]] number 1"
    with contextlib.suppress(UsageError):
        assert len(read_board(value, where, Path()).name) <= 64
