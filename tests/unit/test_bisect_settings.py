"""Which settings are blamed, and the criterion: exact, without a kernel."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from rtscope.boards.kernels.kconfig import Symbol
from rtscope.host.errors import KernelError, UsageError
from rtscope.verbs.bisect.criterion import Margin, Values, parse_margin, threshold_of
from rtscope.verbs.bisect.kernels import refuse_other
from rtscope.verbs.bisect.settings import (
    Blamed,
    Differences,
    Setting,
    blame,
    differences_of,
    minimize,
    name_of,
)


def symbol(name: str, depends: str = "", *, choice: str = "") -> Symbol:
    return Symbol(name, definitions=[(depends,)], prompts=[""], choice=choice)


def two_hundred(*, depends: Mapping[str, str] | None = None) -> Differences:
    depends = depends or {}
    names = [f"DEBUG_{number:03}" for number in range(200)]
    symbols = {name: symbol(name, depends.get(name, "")) for name in names}
    return differences_of({}, dict.fromkeys(names, "y"), symbols)


def blamed_by(
    differences: Differences, causes: Collection[str]
) -> tuple[Blamed, list[str]]:
    """Blame, with a cache as the journal is one; return what was built."""
    built: list[str] = []

    def is_bad(chosen: Sequence[Setting]) -> bool:
        name = name_of(chosen)
        if name not in built and len(chosen) < len(differences.settings):
            built.append(name)
        return set(causes) <= {n for one in chosen for n in one.names}

    return blame(differences, is_bad), built


@pytest.mark.parametrize("number", [0, 1, 77, 100, 128, 199])
def test_one_symbol_among_200_is_found_with_21_builds_or_fewer(number: int) -> None:
    cause = f"DEBUG_{number:03}"

    blamed, built = blamed_by(two_hundred(), {cause})

    assert [one.title for one in blamed.settings] == [cause]
    assert len(built) + len(("good", "bad")) <= 2 * math.log2(200) + 6


def test_two_symbols_that_only_work_together_are_both_found() -> None:
    blamed, _ = blamed_by(two_hundred(), {"DEBUG_003", "DEBUG_150"})

    assert {one.title for one in blamed.settings} == {"DEBUG_003", "DEBUG_150"}


def test_a_symbol_is_changed_with_what_it_depends_on() -> None:
    differences = two_hundred(depends={"DEBUG_150": "DEBUG_003 && !NOTHING"})

    blamed, built = blamed_by(differences, {"DEBUG_150"})

    assert [one.title for one in blamed.settings] == ["DEBUG_150"]
    assert [one.title for one in blamed.along] == ["DEBUG_003"]
    assert len(built) + 2 <= 2 * math.log2(200) + 6


def test_what_a_hundred_symbols_depend_on_is_blamed_and_not_they() -> None:
    hub = {f"DEBUG_{number:03}": "DEBUG_199" for number in range(100)}

    blamed, _ = blamed_by(two_hundred(depends=hub), {"DEBUG_199"})

    assert [one.title for one in blamed.settings] == ["DEBUG_199"]
    assert blamed.along == ()


def test_a_symbol_is_switched_off_with_what_depends_on_it() -> None:
    symbols = {"A": symbol("A"), "B": symbol("B", "A")}
    differences = differences_of({"A": "y", "B": "y"}, {}, symbols)
    (first,) = [one for one in differences.settings if one.names == ("A",)]

    assert [one.title for one in differences.closed([first])] == ["A", "B"]


def test_symbols_of_one_choice_change_together() -> None:
    symbols = {n: symbol(n, choice="choice 1") for n in ("HZ_100", "HZ_250")}
    differences = differences_of({"HZ_100": "y"}, {"HZ_250": "y"}, symbols)

    assert [one.title for one in differences.settings] == ["HZ_100/HZ_250"]


def test_a_mixed_configuration_has_the_bad_values_of_what_was_chosen() -> None:
    symbols = {n: symbol(n) for n in ("A", "B", "SIZE")}
    differences = differences_of(
        {"A": "y", "SIZE": "1", "SAME": "y"},
        {"B": "y", "SIZE": "2", "SAME": "y"},
        symbols,
    )
    chosen = [one for one in differences.settings if one.names != ("B",)]

    text = differences.mixed(chosen)

    assert text.splitlines() == [
        "# CONFIG_A is not set",
        "# CONFIG_B is not set",
        "CONFIG_SAME=y",
        "CONFIG_SIZE=2",
    ]


def test_a_mixed_configuration_leaves_kbuild_nothing_to_choose() -> None:
    symbols = {
        "A": symbol("A"),
        "DEFAULT_ON": replace(symbol("DEFAULT_ON"), kind="bool"),
        "FOLLOWS": Symbol("FOLLOWS", kind="bool", definitions=[("A",)]),
        "CMDLINE": replace(symbol("CMDLINE"), kind="string"),
        "SIZE": replace(symbol("SIZE"), kind="int"),
    }
    good = {"CMDLINE": 'isolcpus=1 name=\\"x\\"'}

    differences = differences_of(good, {**good, "A": "y"}, symbols)

    assert differences.mixed(()).splitlines() == [
        "# CONFIG_A is not set",
        'CONFIG_CMDLINE="isolcpus=1 name=\\"x\\""',
        "# CONFIG_DEFAULT_ON is not set",
    ]


def test_an_end_that_becomes_another_kernel_is_refused() -> None:
    refuse_other("good", {"A": "y"}, {"A": "y"})
    with pytest.raises(KernelError, match=r"good: .* B is y in place of n"):
        refuse_other("good", {"A": "y"}, {"A": "y", "B": "y"})


def test_settings_that_need_each_other_are_blamed_together() -> None:
    symbols = {"USB": symbol("USB"), "STORAGE": symbol("STORAGE", "USB")}
    built_in, modules = dict.fromkeys(symbols, "y"), dict.fromkeys(symbols, "m")

    blamed, _ = blamed_by(differences_of(modules, built_in, symbols), {"USB"})

    assert {one.title for one in blamed.settings} == {"USB", "STORAGE"}


@pytest.mark.parametrize("cause", ["PROVE_LOCKING", "DEBUG_LOCK_ALLOC"])
def test_what_a_setting_selects_is_tried_without_it(cause: str) -> None:
    symbols = {n: symbol(n) for n in ("PROVE_LOCKING", "DEBUG_LOCK_ALLOC", "OTHER")}
    symbols["DEBUG_LOCK_ALLOC"].selected_by["PROVE_LOCKING"] = ""
    differences = differences_of({}, dict.fromkeys(symbols, "y"), symbols)

    blamed, _ = blamed_by(differences, {cause})

    assert [one.title for one in blamed.settings] == [cause]


@pytest.mark.parametrize("cause", ["EFI", "EFI_RUNTIME_MAP"])
def test_what_a_setting_implies_is_blamed_alone(cause: str) -> None:
    symbols = {n: symbol(n) for n in ("EFI", "EFI_RUNTIME_MAP", "OTHER")}
    symbols["EFI_RUNTIME_MAP"].implied_by["EFI"] = ""
    differences = differences_of(dict.fromkeys(symbols, "y"), {}, symbols)

    blamed, _ = blamed_by(differences, {cause})

    assert [one.title for one in blamed.settings] == [cause]
    assert blamed.along == ()


def test_a_prompt_that_is_not_shown_lets_nobody_choose() -> None:
    symbols = {n: symbol(n) for n in ("KEXEC", "EFI", "MAP", "OTHER")}
    symbols["MAP"].prompts = ["EXPERT"]
    symbols["MAP"].implied_by["EFI"] = ""
    off: dict[str, str] = {}
    on = dict.fromkeys(symbols, "y")

    hidden = differences_of(off, on, symbols)
    shown = differences_of(off, {**on, "EXPERT": "y"}, symbols)

    assert [one.title for one in hidden.settings] == ["KEXEC", "EFI", "OTHER"]
    assert [one.title for one in shown.settings] == ["KEXEC", "EFI", "MAP", "OTHER"]


def test_what_nobody_chooses_links_a_setting_to_what_implies_it() -> None:
    hidden = Symbol("KEXEC_CORE", definitions=[()], implied_by={"KEXEC": ""})
    symbols = {
        "KEXEC": symbol("KEXEC"),
        "KEXEC_CORE": hidden,
        "CRASH_DUMP": symbol("CRASH_DUMP", "KEXEC_CORE"),
    }
    differences = differences_of({}, dict.fromkeys(symbols, "y"), symbols)
    needed = {
        one.title: {other.title for other in differences.needs[one]}
        for one in differences.settings
    }

    assert needed["CRASH_DUMP"] == {"KEXEC"}


def test_of_two_causes_one_behind_a_dependency_both_are_found() -> None:
    symbols = {"A": symbol("A"), "B": symbol("B", "A"), "C": symbol("C")}
    differences = differences_of({}, dict.fromkeys(symbols, "y"), symbols)

    blamed, _ = blamed_by(differences, {"A", "C"})

    assert {one.title for one in blamed.settings} == {"A", "C"}
    assert blamed.along == ()


def test_what_cannot_be_tested_is_not_blamed_alone() -> None:
    untestable = {("3",), ("3", "4")}

    def is_bad(chosen: Sequence[str]) -> bool:
        return "3" in chosen and tuple(sorted(chosen)) not in untestable

    found = minimize([str(number) for number in range(8)], is_bad)

    assert "3" in found
    assert is_bad(found)


# --- the criterion ----------------------------------------------------------------


def test_without_a_margin_the_seeds_of_the_good_kernel_give_it() -> None:
    good: Values = {1: 10_000, 2: 30_000, 3: 20_000}

    assert not threshold_of(good, {1: 39_000, 2: 40_000, 3: 5_000}, Margin()).differs
    assert threshold_of(good, {1: 41_000, 2: 42_000, 3: 5_000}, Margin()).differs


def test_a_kernel_between_good_and_bad_counts_as_the_nearer_one() -> None:
    found = threshold_of({1: 10_000}, {1: 30_000}, parse_margin("10%", "max"))

    assert found.margin == 1_000
    assert not found.is_like_second({1: 19_999})
    assert found.is_like_second({1: 20_001})


@pytest.mark.parametrize("text", ["much", "-5us", "20", "10 %%"])
def test_a_margin_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--margin"):
        parse_margin(text, "max")
