"""The operations of a load and their rate, from the YAML file of stress-ng."""

import re
from collections.abc import Iterator, Mapping

import yaml

from rtscope.host.errors import ContractError

MAX_YAML_BYTES = 64 * 1024
"""stress-ng writes about 2 KiB; the parser is slow enough for more to matter."""

MAX_DEPTH = 16

_RATE = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")

_SECTION = re.compile(r"^metrics:\n(?:[ -].*\n?|\n)*", re.MULTILINE)

RATE = "bogo-ops-per-second-real-time"
OPERATIONS = "bogo-ops"

_COUNT = re.compile(r"[0-9]{1,18}")


def throughput_of(yaml_text: str) -> Mapping[str, float]:
    """
    Return operations per second of real time by stressor; empty if none are named.

    Raises ContractError if the text is not YAML as stress-ng writes it. It may come
    from a board or a record, so this trusts nothing in it.
    """
    figures = _figures(_document_of(yaml_text), RATE, _RATE)
    return {name: float(rate) for name, rate in figures}


def operations_of(yaml_text: str) -> Mapping[str, int]:
    """Return the operations completed, by stressor; as `throughput_of` otherwise."""
    figures = _figures(_document_of(yaml_text), OPERATIONS, _COUNT)
    return {name: int(count) for name, count in figures}


def _document_of(yaml_text: str) -> object:
    if len(yaml_text) > MAX_YAML_BYTES:
        raise ContractError(
            f"the metrics of stress-ng have {len(yaml_text):,} characters, more than "
            f"{MAX_YAML_BYTES:,}"
        )
    text = _metrics_section(yaml_text)
    try:
        _refuse_aliases_and_depth(text)
        # BaseLoader makes text of every scalar: no number, date or type is guessed.
        document = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ContractError("the metrics of stress-ng are not valid YAML") from error
    return document


def _metrics_section(text: str) -> str:
    # As a whole it need not be YAML: 0.19.02 (Debian 13) writes build-info with
    # source-date-epoch at the margin and indented keys below it.
    match = _SECTION.search(text)
    return match[0] if match else text


def _refuse_aliases_and_depth(text: str) -> None:
    # A few merged aliases expand to gigabytes, and the loader recurses as deep as the
    # text goes; the events come from a loop, so they can be looked at first.
    depth = 0
    for event in yaml.parse(text, Loader=yaml.BaseLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ContractError("the metrics of stress-ng contain a YAML alias")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ContractError("the metrics of stress-ng are nested too deeply")


def _figures(
    document: object, key: str, form: re.Pattern[str]
) -> Iterator[tuple[str, str]]:
    metrics = document.get("metrics") if isinstance(document, dict) else None
    for row in metrics if isinstance(metrics, list) else ():
        if not isinstance(row, dict):
            continue
        name, figure = row.get("stressor"), row.get(key)
        if isinstance(name, str) and isinstance(figure, str) and form.fullmatch(figure):
            yield name[:64], figure
