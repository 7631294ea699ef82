"""
The plugin of a second pass: that which measured, if it is there and can record it.

Another may take the CPUs' turns in another way, and then it is not the same run: so
whenever it is not this rtscope's that measured, which one boots is said.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rtscope.board.cache import all_parts
from rtscope.board.pluginfit import refusal
from rtscope.board.prepare import PLUGIN, Prepared, plugin_of_ours
from rtscope.board.qemu import with_plugin
from rtscope.virtual.boot import ToRecord, board_folder, recording_in
from rtscope.virtual.prepare import DIGITS


def find_plugin(digest: str, *, cache: Path) -> Path | None:
    """Return the plugin of this SHA-256 that the cache keeps; None if it is gone."""
    for part in all_parts(cache):
        if part.manifest["files"].get(PLUGIN, {}).get("sha256") == digest:
            return part.file(PLUGIN)
    return None


def with_able_plugin(
    prepared: Prepared, record: ToRecord, *, then: str, say: Callable[[str], None]
) -> Prepared:
    """
    Return what boots with a plugin that can record this; say which, if it matters.

    `then` is the SHA-256 of the one that measured; `prepared` has it, or this rtscope's
    if it is gone. Raises BoardError if that is not built.
    """
    has, todays_own = prepared.plugin_digest, replace(prepared, plugin=plugin_of_ours())
    now = todays_own.plugin_digest
    if then == has == now:
        return prepared
    measured, todays = f"that which measured ({then[:DIGITS]})", f"({now[:DIGITS]})"
    if then == has and _takes(prepared, record):
        say(f"with the plugin that measured ({then[:DIGITS]}), not today's {todays}")
        return prepared
    why = "cannot record this" if then == has else "is not in the cache any more"
    say(
        f"with today's plugin {todays}: {measured} {why}; whether it is the same run "
        "its result shows"
    )
    return todays_own


def _takes(prepared: Prepared, record: ToRecord) -> bool:
    """Tell whether a plugin knows all that is asked of it."""
    with board_folder() as name:
        options = with_plugin(
            prepared.plugin,
            prepared.board,
            summary=Path(name) / "summary.json",
            progress=None,
            recording=recording_in(Path(name), record),
        )
        return not refusal(prepared.qemu.prefix, options)
