"""Board kernels ask for what rtscope verifies, and can be told from their twins."""

from dataclasses import replace

import pytest

from rtscope.boards.kernels.recipe import fragment_text, get_recipe, recipe_names
from rtscope.machine.audit.examine import context_of_config, examine, verifying
from rtscope.machine.audit.model import Severity
from rtscope.machine.kernelconfig import KernelConfig, parse_config

REALTIME = [name for name in recipe_names(size="board") if "-rt-" in name]
# The drivers of a PC's frequency select a second governor.
ALLOWED = {"pc": {"other_governors"}}
# What no fragment asks for: kbuild has it with PREEMPT_RT, or refuses PREEMPT_RT.
FOLLOWS = ("ARCH_SUPPORTS_RT", "PREEMPTION", "PREEMPT_COUNT", "PREEMPT_RCU")
# What the defconfig of RISC-V switches on.
OF_DEFCONFIG = {"RT_GROUP_SCHED", "DEBUG_SPINLOCK", "DEBUG_RT_MUTEXES", "DEBUG_PLIST"}


def config_of(name: str) -> KernelConfig:
    recipe = get_recipe(name)
    texts = [fragment_text(recipe, fragment) for fragment in recipe.fragments]
    texts += [f"CONFIG_{name}=y" for name in FOLLOWS]
    asked = parse_config("\n".join(texts).encode(), source=name)
    return replace(asked, whole=True)


@pytest.mark.parametrize("name", REALTIME)
def test_a_realtime_kernel_for_a_board_fails_no_check_of_a_configuration(
    name: str,
) -> None:
    checks = examine(context_of_config(config_of(name)), verifying())
    failed = {c.kind.id for c in checks if c.failed and c.severity > Severity.INFO}

    assert failed == ALLOWED.get(name.split("-")[0], set())


@pytest.mark.parametrize("name", REALTIME)
def test_what_the_defconfig_would_switch_on_is_switched_off(name: str) -> None:
    options = config_of(name).options

    assert {options[f"CONFIG_{symbol}"] for symbol in OF_DEFCONFIG} == {"n"}


@pytest.mark.parametrize("name", REALTIME)
def test_twins_for_a_board_have_releases_of_their_own(name: str) -> None:
    twin = name.replace("-rt-", "-")

    assert config_of(name).options["CONFIG_LOCALVERSION"] == "-rtscope-rt"
    assert config_of(twin).options["CONFIG_LOCALVERSION"] == "-rtscope"
