"""Kconfig: why a symbol is what it is, and what follows from the preemption setting."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from fakes.fakelinux import make_tree
from rtscope.boards.kernels.kconfig import Symbol, near_names, read_kconfig, unmet
from rtscope.boards.kernels.resolved import (
    compare_configs,
    differences,
    refuse,
    requested_settings,
    unknown_and_off,
    values_of,
)
from rtscope.host.errors import KernelError, UsageError


@pytest.fixture
def symbols(tmp_path: Path) -> Mapping[str, Symbol]:
    return read_kconfig(make_tree(tmp_path / "linux"), srcarch="x86")


def _reasons(
    asked: str, resolved: str, symbols: Mapping[str, Symbol]
) -> dict[str, str]:
    values = values_of(resolved, source=".config")
    found = differences(requested_settings({"f": asked}), values, symbols)
    return {one.setting.name: one.reason for one in found}


def test_conditions_come_from_the_symbol_and_from_what_is_around_it(
    symbols: Mapping[str, Symbol],
) -> None:
    assert symbols["PREEMPT_RT"].definitions == [("EXPERT && ARCH_SUPPORTS_RT",)]
    assert symbols["LOCK_SPIN"].definitions[0][0] == "SMP"
    assert symbols["EXPERT"].definitions == [()]


def test_who_selects_and_what_a_default_follows_from_is_known(
    symbols: Mapping[str, Symbol],
) -> None:
    assert set(symbols["PREEMPTION"].selected_by) == {"PREEMPT_RT"}
    assert symbols["RT_MUTEXES"].names() == {"PREEMPT_RT", "SMP"}
    assert symbols["ARCH_SUPPORTS_RT"].names() == {"X86"}


def test_a_symbol_that_is_selected_in_two_cases_is_in_both(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text(
        'config D\n\tbool "D"\n\tselect T if P\n\tselect T if Q\n\timply T if R\n'
        '\tselect U if P\n\tselect U\nconfig T\n\tbool "T"\nconfig U\n\tbool "U"\n'
    )
    symbols = read_kconfig(tmp_path, srcarch="x86")

    assert symbols["T"].selected_by == {"D": "(P) || (Q)"}
    assert symbols["T"].names() == {"D", "P", "Q", "R"}
    assert symbols["U"].selected_by == {"D": ""}
    (reason,) = _reasons(
        "# CONFIG_T is not set\n",
        "CONFIG_D=y\nCONFIG_P=y\nCONFIG_T=y\n",
        symbols,
    ).values()
    assert reason == "it is selected by D"


def test_what_is_implied_can_be_switched_off(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text(
        'config EFI\n\tbool "EFI"\n\timply MAP if X86\n\tselect UCS2\n'
        'config MAP\n\tbool "Map"\nconfig UCS2\n\tbool "UCS-2"\n'
    )
    symbols = read_kconfig(tmp_path, srcarch="x86")

    assert symbols["MAP"].implied_by == {"EFI": "X86"}
    assert symbols["MAP"].selected_by == {}
    assert symbols["MAP"].names() == {"EFI", "X86"}
    reasons = _reasons(
        "# CONFIG_MAP is not set\n# CONFIG_UCS2 is not set\n",
        "CONFIG_X86=y\nCONFIG_EFI=y\nCONFIG_MAP=y\nCONFIG_UCS2=y\n",
        symbols,
    )
    assert reasons["UCS2"] == "it is selected by EFI"
    assert "EFI" not in reasons["MAP"]


@pytest.mark.parametrize(
    ("expression", "missing"),
    [
        ("A", ["A, which is n"]),
        ("A && B", ["A, which is n", "B, which is n"]),
        ("A && Y", ["A, which is n"]),
        ("A || Y", []),
        ("A || B", ["A, which is n or B, which is n"]),
        ("!Y", ["Y off, which is y"]),
        ("!(A && Y)", []),
        ("Y && (A || !Y)", ["A, which is n or Y off, which is y"]),
        ("M", []),
        ("HZ = 250", ["HZ = 250, and it is 100"]),
        ("A=n && Y!=n", []),
        ("$(cc-option,-fno-x) && Y", []),
        ("$(success,test $(a) = b) && A", ["A, which is n"]),
        ("CC_VERSION >= 120000", []),
    ],
)
def test_what_keeps_an_expression_from_being_true(
    expression: str, missing: list[str]
) -> None:
    assert unmet(expression, {"Y": "y", "M": "m", "HZ": "100"}) == missing


def test_an_expression_that_ends_too_early_is_an_error_of_ours_to_tell() -> None:
    with pytest.raises(KernelError, match="cannot parse"):
        unmet("A &&", {})


def test_the_missing_dependency_is_named(symbols: Mapping[str, Symbol]) -> None:
    reasons = _reasons("CONFIG_PREEMPT_RT=y\n", "CONFIG_ARCH_SUPPORTS_RT=y\n", symbols)

    assert reasons == {"PREEMPT_RT": "needs EXPERT, which is n"}


def test_what_cannot_be_chosen_is_told_with_what_it_follows_from(
    symbols: Mapping[str, Symbol],
) -> None:
    reasons = _reasons("CONFIG_RT_MUTEXES=y\n", "CONFIG_SMP=y\n", symbols)

    assert reasons["RT_MUTEXES"].endswith("it follows from PREEMPT_RT, SMP")


def test_what_is_selected_cannot_be_switched_off(
    symbols: Mapping[str, Symbol],
) -> None:
    resolved = "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPTION=y\n"

    reasons = _reasons("# CONFIG_PREEMPTION is not set\n", resolved, symbols)

    assert reasons == {"PREEMPTION": "it is selected by PREEMPT_RT"}


def test_what_only_experts_may_change_is_told(symbols: Mapping[str, Symbol]) -> None:
    reasons = _reasons(
        "# CONFIG_SHOWN_TO_EXPERTS is not set\n",
        "CONFIG_SHOWN_TO_EXPERTS=y\n",
        symbols,
    )

    assert reasons == {
        "SHOWN_TO_EXPERTS": "can be switched off only with EXPERT, which is n"
    }


def test_near_names_are_offered(symbols: Mapping[str, Symbol]) -> None:
    assert near_names("PREEMT_RT", symbols)[0] == "PREEMPT_RT"


def test_a_later_fragment_overrides_an_earlier_one() -> None:
    asked = requested_settings({"a": "CONFIG_X=y\n", "b": "# CONFIG_X is not set\n"})

    assert [(one.name, one.value, one.fragment) for one in asked] == [("X", "n", "b")]


@pytest.mark.parametrize(
    "line",
    [
        *("PREEMPT_RT=y", "CONFIG_PREEMPT_RT = y", "CONFIG_PREEMPT_RT", " CONFIG_X=y"),
        *("#CONFIG_X is not set", "# CONFIG_X is not set.", "# X is not set"),
    ],
)
def test_a_line_that_kbuild_would_pass_over_is_refused_with_its_number(
    line: str,
) -> None:
    text = f"# what follows is not set by chance\nCONFIG_EXPERT=y\n\n{line}\n"

    with pytest.raises(UsageError, match=r"^\./mine\.config, line 4: .* sets nothing"):
        requested_settings({"./mine.config": text})


def test_what_is_to_be_off_and_does_not_exist_gets_the_names_like_it(
    symbols: Mapping[str, Symbol],
) -> None:
    asked = requested_settings(
        {"f": "# CONFIG_PREEMTION is not set\n# CONFIG_SMP is not set\n"}
    )

    found = unknown_and_off(asked, symbols)

    assert {one.name: near[0] for one, near in found.items()} == {
        "PREEMTION": "PREEMPTION"
    }


def test_a_refusal_lists_every_symbol_with_its_fragment(
    symbols: Mapping[str, Symbol],
) -> None:
    asked = requested_settings({"rt": "CONFIG_PREEMPT_RT=y\nCONFIG_TYPO=y\n"})

    with pytest.raises(KernelError) as caught:
        refuse(differences(asked, {}, symbols), recipe="k")

    assert "PREEMPT_RT=y (of rt) became n: needs EXPERT" in str(caught.value)
    assert "TYPO=y (of rt) became n: this source has no such symbol" in str(
        caught.value
    )


def test_twins_differ_in_preemption_and_what_follows_and_a_stranger_is_seen() -> None:
    names = {"PREEMPTION": ["PREEMPT_RT"], "RT_MUTEXES": ["PREEMPTION"], "HZ": []}
    one = {"PREEMPT": "y", "HZ": "250"}
    two = {"PREEMPT_RT": "y", "PREEMPTION": "y", "RT_MUTEXES": "y", "HZ": "100"}

    found = compare_configs(one, two, names)

    assert set(found.preemption) == {"PREEMPT", "PREEMPT_RT"}
    assert set(found.follows) == {"PREEMPTION", "RT_MUTEXES"}
    assert found.other == {"HZ": ("250", "100")}


def test_the_symbols_of_one_choice_are_told_from_those_of_another(
    tmp_path: Path,
) -> None:
    (tmp_path / "Kconfig").write_text(
        'choice\n\tprompt "Tick"\nconfig HZ_100\n\tbool "100"\nif EXPERT\n'
        'config HZ_250\n\tbool "250"\nendif\nendchoice\n'
        'choice\n\tprompt "Other"\nconfig ONE\n\tbool "1"\nendchoice\n'
        'config ALONE\n\tbool "Alone"\n'
    )
    found = read_kconfig(tmp_path, srcarch="x86")

    assert found["HZ_100"].choice == found["HZ_250"].choice != ""
    assert found["ONE"].choice not in ("", found["HZ_100"].choice)
    assert found["ALONE"].choice == ""
