/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "arch.h"

#include <string.h>

#include "../agent/marker.h"

static uint32_t word(const struct instruction *i)
{
	return (uint32_t)i->byte[0] | (uint32_t)i->byte[1] << 8 |
	       (uint32_t)i->byte[2] << 16 | (uint32_t)i->byte[3] << 24;
}

static bool x86_64_is_marker(const struct instruction *i)
{
	static const uint8_t marker[] = { MARKER_X86_64_BYTES };

	return i->size == sizeof(marker) && memcmp(i->byte, marker, i->size) == 0;
}

/* cld: how Linux begins every interrupt and exception. */
static bool x86_64_is_entry(const struct instruction *i)
{
	return i->byte[0] == 0xfc;
}

static bool x86_64_may_switch(const struct instruction *i)
{
	bool wide = i->byte[0] == 0x48; /* REX.W */

	switch (i->byte[wide]) {
	case 0xfa: /* cli */
	case 0xfb: /* sti */
	case 0x9d: /* popf */
	case 0xcf: /* iret */
		return true;
	case 0x0f: /* syscall, sysret */
		return i->byte[wide + 1] == 0x05 || i->byte[wide + 1] == 0x07;
	default:
		return false;
	}
}

/* inc, dec, add, sub, mov, and, or of a 32-bit variable of the CPU, none that only
 * reads it */
static bool x86_64_may_count(const struct instruction *i, const struct place *count)
{
	(void)count;
	if (i->byte[0] != 0x65) /* gs: */
		return false;
	switch (i->byte[1]) {
	case 0x01:
	case 0x29:
	case 0x89:
	case 0xc7:
	case 0xff:
		return true;
	case 0x81:
	case 0x83:
		return (i->byte[2] >> 3 & 7) != 7; /* cmp */
	default:
		return false;
	}
}

static bool x86_64_is_wait(const struct instruction *i)
{
	return i->byte[0] == 0xf4; /* hlt */
}

/* rdtsc, rdtscp; in, by which the ACPI timer is read */
static bool x86_64_reads_clock(const struct instruction *i)
{
	switch (i->byte[0]) {
	case 0xe4:
	case 0xe5:
	case 0xec:
	case 0xed:
		return true;
	case 0x0f:
		return i->byte[1] == 0x31 || (i->byte[1] == 0x01 && i->byte[2] == 0xf9);
	default:
		return false;
	}
}

static bool x86_64_is_pause(const struct instruction *i)
{
	return i->byte[0] == 0xf3 && i->byte[1] == 0x90;
}

static bool aarch64_is_marker(const struct instruction *i)
{
	return word(i) == MARKER_AARCH64_WORD;
}

/* mrs x, elr_el1 */
static bool aarch64_is_entry(const struct instruction *i)
{
	return (word(i) & 0xffffffe0) == 0xd5384020;
}

static bool aarch64_may_switch(const struct instruction *i)
{
	uint32_t w = word(i);

	return (w & 0xfffff0df) == 0xd50340df || /* msr daifset, daifclr */
	       (w & 0xffffffe0) == 0xd51b4220 || /* msr daif, x */
	       w == 0xd69f03e0;                  /* eret */
}

/* str w, [x, #offset] */
static bool aarch64_may_count(const struct instruction *i, const struct place *count)
{
	uint32_t w = word(i);

	return (w & 0xffc00000) == 0xb9000000 &&
	       (int64_t)(w >> 10 & 0xfff) * 4 == count->offset;
}

static bool aarch64_is_wait(const struct instruction *i)
{
	return word(i) == 0xd503207f; /* wfi */
}

/* mrs of the generic timer: op1 3, CRn 14 */
static bool aarch64_reads_clock(const struct instruction *i)
{
	return (word(i) & 0xfffff000) == 0xd53be000;
}

/* yield, wfe */
static bool aarch64_is_pause(const struct instruction *i)
{
	return word(i) == 0xd503203f || word(i) == 0xd503205f;
}

static bool riscv64_is_marker(const struct instruction *i)
{
	return i->size == 4 && word(i) == MARKER_RISCV64_WORD;
}

/* csrrw tp, sscratch, tp */
static bool riscv64_is_entry(const struct instruction *i)
{
	return word(i) == 0x14021273;
}

static bool riscv64_may_switch(const struct instruction *i)
{
	uint32_t w = word(i);
	bool reads_only = (w >> 13 & 1) && !(w >> 15 & 31); /* csrrs, csrrc with x0 */

	return w == 0x10200073 || /* sret */
	       ((w & 0x7f) == 0x73 && w >> 20 == 0x100 && (w >> 12 & 3) &&
		!reads_only); /* a write of sstatus */
}

/* sw x, offset(tp) */
static bool riscv64_may_count(const struct instruction *i, const struct place *count)
{
	uint32_t w = word(i);
	int64_t offset = (w >> 7 & 31) | (w >> 25) << 5;

	return (w & 0x000ff07f) == 0x00022023 && offset == count->offset;
}

static bool riscv64_is_wait(const struct instruction *i)
{
	return word(i) == 0x10500073;
}

/* csrr of cycle, time or instret: all three count virtual time */
static bool riscv64_reads_clock(const struct instruction *i)
{
	uint32_t w = word(i);

	return (w & 0x7f) == 0x73 && (w >> 12 & 3) && w >> 20 >= 0xc00 &&
	       w >> 20 <= 0xc02;
}

/* QEMU lets a CPU go on behind its pause. */
static bool riscv64_is_pause(const struct instruction *i)
{
	(void)i;
	return false;
}

static const struct arch arches[] = {
	{
		.name = "x86_64",
		.latency = MARKER_X86_64_LATENCY,
		.sequence = MARKER_X86_64_SEQUENCE,
		.is_marker = x86_64_is_marker,
		.is_entry = x86_64_is_entry,
		.may_switch_interrupts = x86_64_may_switch,
		.may_count = x86_64_may_count,
		.reads_clock = x86_64_reads_clock,
		.is_pause = x86_64_is_pause,
		.is_wait = x86_64_is_wait,
		.argument = { "rdi", "rsi", "rdx", "rcx" },
		.result = "rax",
		.stack = "rsp",
		.call_argument = { 112, 104, 96 },
		.call_bytes = 168,
		.call_sleep = 230,
		.call_futex = 202,
		.call_proof = 120, /* orig_ax */
		.call_pc = 128,
		.call_sp = 152,
		.unwound = { { "rax", 80 },     { "rbx", 40 },  { "rcx", 88 },
			     { "rdx", 96 },     { "rsi", 104 }, { "rdi", 112 },
			     { "rbp", 32 },     { "rsp", 152 }, { "rip", 128 },
			     { "eflags", 144 }, { "cs", 136 },  { "ss", 160 },
			     { "r8", 72 },      { "r9", 64 },   { "r10", 56 },
			     { "r11", 48 },     { "r12", 24 },  { "r13", 16 },
			     { "r14", 8 },      { "r15", 0 } },
		.count_tells = true,
		.flags = "eflags",
		.flag = UINT64_C(1) << 9, /* IF */
	},
	{
		.name = "aarch64",
		.latency = MARKER_AARCH64_LATENCY,
		.sequence = MARKER_AARCH64_SEQUENCE,
		.is_marker = aarch64_is_marker,
		.is_entry = aarch64_is_entry,
		.may_switch_interrupts = aarch64_may_switch,
		.may_count = aarch64_may_count,
		.reads_clock = aarch64_reads_clock,
		.is_pause = aarch64_is_pause,
		.is_wait = aarch64_is_wait,
		.argument = { "x0", "x1", "x2", "x3" },
		.result = "x0",
		.stack = "sp",
		.call_argument = { 0, 8, 16 },
		.call_bytes = 288,
		.call_sleep = 115,
		.call_futex = 98,
		.call_proof = 280,  /* syscallno */
		.narrow_word = 264, /* pstate: PSR_MODE32_BIT */
		.narrow_bits = 0x10,
		.narrow_sleep = 407,
		.narrow_futex = { 240, 422 },
		.call_pc = 256,
		.call_sp = 248,
		.link = 30,
		.unwound = { { "x0", 0 },    { "x1", 8 },    { "x2", 16 },
			     { "x3", 24 },   { "x4", 32 },   { "x5", 40 },
			     { "x6", 48 },   { "x7", 56 },   { "x8", 64 },
			     { "x9", 72 },   { "x10", 80 },  { "x11", 88 },
			     { "x12", 96 },  { "x13", 104 }, { "x14", 112 },
			     { "x15", 120 }, { "x16", 128 }, { "x17", 136 },
			     { "x18", 144 }, { "x19", 152 }, { "x20", 160 },
			     { "x21", 168 }, { "x22", 176 }, { "x23", 184 },
			     { "x24", 192 }, { "x25", 200 }, { "x26", 208 },
			     { "x27", 216 }, { "x28", 224 }, { "x29", 232 },
			     { "x30", 240 }, { "sp", 248 },  { "pc", 256 } },
		.flags = "cpsr",
		.flag = UINT64_C(1) << 7, /* I */
		.flag_masks = true,
	},
	{
		.name = "riscv64",
		.latency = MARKER_RISCV64_LATENCY,
		.sequence = MARKER_RISCV64_SEQUENCE,
		.is_marker = riscv64_is_marker,
		.is_entry = riscv64_is_entry,
		.may_switch_interrupts = riscv64_may_switch,
		.may_count = riscv64_may_count,
		.reads_clock = riscv64_reads_clock,
		.is_pause = riscv64_is_pause,
		.is_wait = riscv64_is_wait,
		.argument = { "a0", "a1", "a2", "a3" },
		.result = "a0",
		.stack = "sp",
		.call_argument = { 80, 88, 96 },
		.call_bytes = 288,
		.call_sleep = 115,
		.call_futex = 98,
		.call_number = 136,
		.call_proof = 272, /* cause: an environment call of a program */
		.call_proves = 8,
		.call_pc = 0,
		.call_ends = 4,
		.call_sp = 16,
		.link = 1,
		.unwound = { { "pc", 0 },    { "ra", 8 },   { "sp", 16 },
			     { "gp", 24 },   { "tp", 32 },  { "t0", 40 },
			     { "t1", 48 },   { "t2", 56 },  { "fp", 64 },
			     { "s1", 72 },   { "a0", 80 },  { "a1", 88 },
			     { "a2", 96 },   { "a3", 104 }, { "a4", 112 },
			     { "a5", 120 },  { "a6", 128 }, { "a7", 136 },
			     { "s2", 144 },  { "s3", 152 }, { "s4", 160 },
			     { "s5", 168 },  { "s6", 176 }, { "s7", 184 },
			     { "s8", 192 },  { "s9", 200 }, { "s10", 208 },
			     { "s11", 216 }, { "t3", 224 }, { "t4", 232 },
			     { "t5", 240 },  { "t6", 248 } },
		.page_tables = "satp",
		.firmware = UINT64_C(0x80000000), /* OpenSBI */
		.firmware_end = UINT64_C(0x80200000),
		.vector = "scause",
		.flags = "sstatus",
		.flag = UINT64_C(1) << 1, /* SIE */
	},
};

const struct arch *arch_find(const char *name)
{
	for (size_t i = 0; i < sizeof(arches) / sizeof(arches[0]); i++)
		if (strcmp(arches[i].name, name) == 0)
			return &arches[i];
	return NULL;
}
