"""The audit beside a virtual board's record: what is known without asking the board."""

from rtscope.audit.examine import context_of_config
from rtscope.board.prepare import Prepared
from rtscope.errors import TargetError
from rtscope.machine.kernelconfig import parse_config
from rtscope.measure.audit import Audited, audited, failed_audit, run_checks


def audit_board(prepared: Prepared) -> Audited:
    """
    Audit the kernel of a board by its configuration.

    To read inside would cost a boot, or instructions that the measurement would see;
    `rtscope audit --target virtual:BOARD` spends the boot.
    """
    kernel = prepared.kernel
    if kernel.config is None:
        return failed_audit(
            TargetError(f"{kernel.name} is an image without its configuration")
        )
    try:
        config = parse_config(kernel.config.read_bytes(), source=kernel.config.name)
    except (TargetError, OSError) as error:
        return failed_audit(error)
    name = f"virtual:{prepared.board.name} with {kernel.name}"
    return audited(context_of_config(config), run_checks(config_only=True), of=name)
