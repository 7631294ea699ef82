#!/usr/bin/env python3
"""
Check programs whose files are bombs, by the whole command: status, time and memory.

    .venv/bin/python bench/hostile_programs.py [KIND ...]

The program runs as it was compiled: only what nothing loads (debug information, tables
of symbols and sections) is changed in its file, or it makes code, names and mappings
itself. 1 for a crash (status 70), more than 512 MiB or a minute of CPU time.
As root; `mappings` raises vm.max_map_count meanwhile.
"""

import argparse
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

MOST_MIB = 512
MOST_S = 60
MOST_BYTES = 4 << 30
"""Of address space, so that no mistake takes this machine's memory."""
CRASH = 70
COMPRESSED = 0x800
MAP_COUNT = Path("/proc/sys/vm/max_map_count")

SOURCE = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile int used;
__attribute__((noinline)) int work(int number)
{
	char *text = malloc(100 + number % 50);
	memset(text, number, 100);
	used += text[3];
	free(text);
	return used;
}
__attribute__((noinline)) int step(int number) { return work(number) + 1; }
typedef int call(int (*)(int), int);
/* push rbp; mov rbp, rsp; mov rax, rdi; mov edi, esi; call rax; pop rbp; ret */
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x89,
					0xf7, 0xff, 0xd0, 0x5d, 0xc3 };
int main(int argc, char **argv)
{
	const long mappings = argc > 1 ? atol(argv[1]) : 0;
	const long names = argc > 2 ? atol(argv[2]) : 0;
	unsigned char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec pause = { 0, 1000000 };

	memcpy(made, code, sizeof(code));
	for (long i = 0; i < mappings; i++)
		mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (names) {
		char path[64];
		FILE *file;

		snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
		file = fopen(path, "w");
		for (long i = 0; file && i < names; i++)
			fprintf(file, "%lx 10 made%ld\n",
				(unsigned long)made + 16 * i, i);
		if (file)
			fclose(file);
	}
	puts("ready");
	fflush(stdout);
	for (int i = 0;; i++) {
		((call *)made)(step, i);
		nanosleep(&pause, NULL);
	}
}
"""


@dataclass(slots=True)
class Elf:
    """A file of 64 bits, whose sections are put elsewhere."""

    data: bytearray

    def _rows(self) -> Mapping[str, int]:
        """Return where the row of each section is, by name."""
        at, size, count, names = (
            struct.unpack_from("<Q", self.data, 40)[0],
            *struct.unpack_from("<HHH", self.data, 58),
        )
        rows = [at + size * number for number in range(count)]
        texts = struct.unpack_from("<Q", self.data, rows[names] + 24)[0]
        found = {}
        for row in rows:
            begin = texts + struct.unpack_from("<I", self.data, row)[0]
            found[self.data[begin : self.data.index(0, begin)].decode()] = row
        return found

    def content(self, name: str) -> bytes:
        """Return a section."""
        at, size = struct.unpack_from("<QQ", self.data, self._rows()[name] + 24)
        return bytes(self.data[at : at + size])

    def put(self, name: str, content: bytes, *, flags: int = 0) -> None:
        """Put other content in the place of a section."""
        row = self._rows()[name]
        struct.pack_into("<Q", self.data, row + 8, flags)
        struct.pack_into("<QQ", self.data, row + 24, len(self.data), len(content))
        self.data += content

    def overwrite(self, name: str, content: bytes) -> None:
        """Change what is loaded too: it stays where it is, and as long."""
        at, size = struct.unpack_from("<QQ", self.data, self._rows()[name] + 24)
        whole = (content * (size // len(content) + 1))[:size]
        self.data[at : at + size] = whole


def _uleb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _unit(entries: bytes) -> bytes:
    content = struct.pack("<HIB", 4, 0, 8) + entries
    return struct.pack("<I", len(content)) + content


def _kind(code: int, tag: int, *pairs: int, children: bool) -> bytes:
    row = _uleb(code) + _uleb(tag) + bytes([children])
    return row + b"".join(map(_uleb, pairs)) + b"\0\0"


_RANGE = (0x11, 0x01, 0x12, 0x07)  # low_pc: address, high_pc: 8 bytes
_KINDS = (
    _kind(1, 0x11, *_RANGE, children=True)
    + _kind(2, 0x2E, *_RANGE, 0x31, 0x13, children=True)  # a function, of an origin
    + _kind(3, 0x0B, *_RANGE, children=True)  # a block
    + b"\0"
)


def _span(code: int) -> bytes:
    return _uleb(code) + struct.pack("<QQ", 0x400000, 1 << 24)


def unpacks(elf: Elf) -> None:
    """Debug information that unpacks to 8 GiB."""
    packer = zlib.compressobj(9)
    zeros = bytes(1 << 24)
    packed = b"".join(packer.compress(zeros) for _ in range(512)) + packer.flush()
    head = struct.pack("<IIQQ", 1, 0, 8 << 30, 1)
    elf.put(".debug_info", head + packed, flags=COMPRESSED)


def unpacks_lies(elf: Elf) -> None:
    """Lines that are said to unpack to 2^60 bytes."""
    packed = struct.pack("<IIQQ", 1, 0, 1 << 60, 1) + zlib.compress(bytes(1000))
    elf.put(".debug_line", packed, flags=COMPRESSED)


def origin(elf: Elf) -> None:
    """A function whose origin is itself."""
    first = _span(1)
    entry = _span(2) + struct.pack("<I", 11 + len(first))
    elf.put(".debug_abbrev", _KINDS)
    elf.put(".debug_info", _unit(first + entry + b"\0\0\0"))


def nested(elf: Elf) -> None:
    """Two million blocks inside each other."""
    elf.put(".debug_abbrev", _KINDS)
    elf.put(".debug_info", _unit(_span(1) + _span(3) * 2_000_000))


def kinds(elf: Elf) -> None:
    """Six million kinds of entries."""
    row = _kind(9, 0x0B, children=False)
    elf.put(".debug_abbrev", row * 6_000_000)


def units(elf: Elf) -> None:
    """Three million units of debug information."""
    elf.put(".debug_abbrev", _KINDS)
    elf.put(".debug_info", _unit(_span(1) + b"\0") * 3_000_000)


def lines(elf: Elf) -> None:
    """A program of lines that adds a row with each of 100 million bytes."""
    old = elf.content(".debug_line")
    head = struct.unpack_from("<I", old, 8)[0]  # of version 5: sizes are before it
    end = 12 + head
    body = old[4:end] + b"\0\x09\x02" + struct.pack("<Q", 0x400000)
    body += b"\xff" * 100_000_000
    elf.put(".debug_line", struct.pack("<I", len(body)) + body)


def files(elf: Elf) -> None:
    """A table of lines with 2^40 files."""
    head = bytes([1, 1, 1, 0xFB, 14, 13, *(0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1)])
    table = b"\1\1\x08" + _uleb(1 << 40) + b"a\0" * 1000
    body = struct.pack("<HBBI", 5, 8, 0, len(head + table)) + head + table
    elf.put(".debug_line", struct.pack("<I", len(body)) + body)


def doubles(elf: Elf) -> None:
    """A name of C++ that doubles with each step."""
    steps = "".join(f"S{one}_" * 2 for one in ("", *map(str, range(30))))
    _rename(elf, f"_Z4stepI1AIS_S_E{steps}EvT_".encode())


def long_name(elf: Elf) -> None:
    """A name of 64 MiB."""
    _rename(elf, b"a" * (64 << 20))


def _rename(elf: Elf, name: bytes) -> None:
    texts, table = elf.content(".strtab"), bytearray(elf.content(".symtab"))
    for at in range(0, len(table), 24):
        begin = struct.unpack_from("<I", table, at)[0]
        if texts[begin : texts.index(0, begin)] in {b"step", b"work"}:
            struct.pack_into("<I", table, at, len(texts))
    elf.put(".strtab", texts + name + b"\0")
    elf.put(".symtab", bytes(table))


def symbols(elf: Elf) -> None:
    """Eight million symbols of one place."""
    row = struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x401000, 1 << 20)
    elf.put(".symtab", elf.content(".symtab") + row * 8_000_000)


def sections(elf: Elf) -> None:
    """2^40 sections, by the size of the first."""
    row = struct.unpack_from("<Q", elf.data, 40)[0]
    struct.pack_into("<Q", elf.data, row + 32, 1 << 40)
    struct.pack_into("<H", elf.data, 60, 0)


def frames(elf: Elf) -> None:
    """Frames whose entries have no length."""
    elf.overwrite(".eh_frame", b"\0\0\0\0\xff\xff\xff\xff")


def expressions(elf: Elf) -> None:
    """Frames whose rules skip back for ever."""
    elf.overwrite(".eh_frame_hdr", b"\1\x1b\3\x3b\x10\0\0\0\xff\xff\xff\x7f")


def nothing(elf: Elf) -> None:
    """The file as it was compiled."""


MAPPINGS = 100_000
NAMES = 10_000_000
KINDS: Mapping[str, tuple[Callable[[Elf], None], tuple[str, ...]]] = {
    "plain": (nothing, ()),
    **{
        one.__name__: (one, ())
        for one in (
            *(unpacks, unpacks_lies, origin, nested, kinds, units, lines, files),
            *(doubles, long_name, symbols, sections, frames, expressions),
        )
    },
    "mappings": (nothing, (str(MAPPINGS),)),
    "made names": (nothing, ("0", str(NAMES))),
}


@dataclass(frozen=True, slots=True)
class Checked:
    """How a check ended, what it needed, and what it said."""

    status: int
    wall_s: float
    cpu_s: float
    mib: float
    said: str


def checked(argv: list[str], cache: Path) -> Checked:
    """Start a program and check it."""
    words = ("app", "check", "--duration", "1s", "-v")
    with subprocess.Popen(
        ["chrt", "-f", "10", *argv], stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            assert program.stdout is not None
            program.stdout.readline()
            begun = time.monotonic()
            with tempfile.TemporaryFile("w+") as out:
                check = subprocess.Popen(
                    [
                        *("prlimit", f"--as={MOST_BYTES}", sys.executable),
                        *("-m", "rtscope", *words, str(program.pid)),
                    ],
                    stdout=out,
                    stderr=out,
                    env={**os.environ, "XDG_CACHE_HOME": str(cache)},
                )
                _, status, usage = os.wait4(check.pid, 0)
                check.returncode = os.waitstatus_to_exitcode(status)
                out.seek(0)
                said = out.read()
            lasted = time.monotonic() - begun
        finally:
            program.kill()
            Path(f"/tmp/perf-{program.pid}.map").unlink(missing_ok=True)
    cpu_s = usage.ru_utime + usage.ru_stime
    return Checked(check.returncode, lasted, cpu_s, usage.ru_maxrss / 1024, said)


def _said(text: str) -> str:
    """Return the first line of what was not named, or the last line."""
    whole = text.splitlines()
    why = [one for one in whole if "because" in one or one.startswith("not ")]
    return (why or whole[-1:] or [""])[0][:90].replace("|", "/")


def main() -> int:
    """Print a row for each kind; 1 if one broke a limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("kinds", nargs="*", help="default: all", metavar="KIND")
    asked = parser.parse_args().kinds or list(KINDS)
    if unknown := [one for one in asked if one not in KINDS]:
        parser.error(f"no kind {unknown[0]}: name some of {', '.join(KINDS)}")
    broken = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as stack:
        if "mappings" in asked:
            before = MAP_COUNT.read_text()
            MAP_COUNT.write_text("200000")
            stack.callback(MAP_COUNT.write_text, before)
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="rtscope-bench-"))
        )
        source, base = folder / "bomb.c", folder / "base"
        source.write_text(SOURCE)
        options = ("-O1", "-g", "-gdwarf-5", "-no-pie")
        subprocess.run(["gcc", *options, "-o", base, source], check=True)
        print(
            "| kind | status | s | CPU s | MiB | said |\n|---|--:|--:|--:|--:|---|",
            flush=True,
        )
        for kind in asked:
            change, argv = KINDS[kind]
            elf = Elf(bytearray(base.read_bytes()))
            change(elf)
            file = folder / kind.replace(" ", "-")
            file.write_bytes(elf.data)
            file.chmod(0o700)
            del elf
            one = checked([str(file), *argv], folder / "cache")
            file.unlink()
            broken += one.status == CRASH or one.mib > MOST_MIB or one.cpu_s > MOST_S
            print(
                f"| {kind} | {one.status} | {one.wall_s:.1f} | {one.cpu_s:.1f} "
                f"| {one.mib:.0f} | {_said(one.said)} |",
                flush=True,
            )
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
