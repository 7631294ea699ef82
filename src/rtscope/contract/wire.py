"""One line of the agent to a value and back: the only reader of the contract."""

from functools import cache

from pydantic import TypeAdapter, ValidationError

from rtscope.contract.lines import MAX_LINE_BYTES, Line
from rtscope.errors import ContractError
from rtscope.files import first_mistake


@cache
def _line_adapter() -> TypeAdapter[Line]:
    return TypeAdapter(Line)


def parse_line(line: bytes) -> Line:
    """Read one line of the agent; raise ContractError if it is not one."""
    if len(line) > MAX_LINE_BYTES:
        raise ContractError(f"the agent wrote a line of {len(line)} bytes")
    try:
        return _line_adapter().validate_json(line)
    except ValidationError as error:
        raise ContractError(
            "the agent wrote a line that breaks its contract: "
            f"{first_mistake(error, whole='line')} "
            f"(in {line[:60].decode('utf-8', 'replace')!a})"
        ) from error


def dump_line(line: Line) -> bytes:
    """Write a line as the agent would: the inverse of `parse_line`."""
    return _line_adapter().dump_json(line)
