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

static bool x86_64_may_switch(const struct instruction *i)
{
	bool wide = i->byte[0] == 0x48; /* REX.W */
	uint8_t first = i->byte[wide], second = i->byte[wide + 1];

	switch (first) {
	case 0xfa: /* cli */
	case 0xfb: /* sti */
	case 0x9d: /* popf */
	case 0xcf: /* iret */
	case 0xfc: /* cld: how Linux begins every interrupt and exception */
		return true;
	case 0x0f: /* syscall, sysret */
		return second == 0x05 || second == 0x07;
	default:
		return false;
	}
}

static bool aarch64_is_marker(const struct instruction *i)
{
	return word(i) == MARKER_AARCH64_WORD;
}

static bool aarch64_may_switch(const struct instruction *i)
{
	uint32_t w = word(i);

	return (w & 0xfffff0df) == 0xd50340df || /* msr daifset, daifclr */
	       (w & 0xffffffe0) == 0xd51b4220 || /* msr daif, x */
	       (w & 0xffffffe0) == 0xd5384020 || /* mrs x, elr_el1: Linux' entries */
	       (w & 0xffe0001f) == 0xd4000001 || /* svc */
	       w == 0xd69f03e0;                  /* eret */
}

static bool riscv64_is_marker(const struct instruction *i)
{
	return i->size == 4 && word(i) == MARKER_RISCV64_WORD;
}

/* Every access to a control register, ecall and sret: entries begin with one. */
static bool riscv64_may_switch(const struct instruction *i)
{
	return (word(i) & 0x7f) == 0x73;
}

static const struct arch arches[] = {
	{
		.name = "x86_64",
		.latency = MARKER_X86_64_LATENCY,
		.sequence = MARKER_X86_64_SEQUENCE,
		.is_marker = x86_64_is_marker,
		.may_switch_interrupts = x86_64_may_switch,
		.flags = "eflags",
		.flag = UINT64_C(1) << 9, /* IF */
	},
	{
		.name = "aarch64",
		.latency = MARKER_AARCH64_LATENCY,
		.sequence = MARKER_AARCH64_SEQUENCE,
		.is_marker = aarch64_is_marker,
		.may_switch_interrupts = aarch64_may_switch,
		.flags = "cpsr",
		.flag = UINT64_C(1) << 7, /* I */
		.flag_masks = true,
	},
	{
		.name = "riscv64",
		.latency = MARKER_RISCV64_LATENCY,
		.sequence = MARKER_RISCV64_SEQUENCE,
		.is_marker = riscv64_is_marker,
		.may_switch_interrupts = riscv64_may_switch,
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
