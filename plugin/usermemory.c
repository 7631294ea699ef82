/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "usermemory.h"

#include "qemu.h"
#include "registers.h"

/* satp: its mode, and the number of the page of the first table */
#define MODE_SHIFT 60
#define SV39       8 /* three levels of tables; each mode behind it has one more */
#define SV57       10
#define PAGE_SHIFT 12
#define PAGE       (1u << PAGE_SHIFT)
#define TABLE_BITS 9

/* An entry: valid, readable, executable, of a program; the number of a page */
#define ENTRY_VALID   UINT64_C(0x01)
#define ENTRY_LEAF    UINT64_C(0x0a)
#define ENTRY_PROGRAM UINT64_C(0x10)
#define ENTRY_SHIFT   10
#define NUMBER_MASK   ((UINT64_C(1) << 44) - 1)

static struct qemu_plugin_register *root_register;

bool usermemory_init(const char *root)
{
	root_register = root ? registers_find(root) : NULL;
	return !root || root_register;
}

static void read_physical(uint64_t address, void *to, unsigned int bytes)
{
	cpu_physical_memory_rw(address, to, bytes, false);
}

/* The bits above those that are looked up are all as the highest of these. */
static bool is_address(uint64_t address, unsigned int levels)
{
	uint64_t above = address >> (PAGE_SHIFT + levels * TABLE_BITS - 1);

	return !above || above == UINT64_MAX >> (PAGE_SHIFT + levels * TABLE_BITS - 1);
}

/* Returns whether a program has this address in its memory. */
static bool physical_of(uint64_t address, uint64_t *out)
{
	uint64_t root, mode, table;
	unsigned int levels;

	if (!registers_read(root_register, &root))
		return false;
	mode = root >> MODE_SHIFT;
	if (mode < SV39 || mode > SV57)
		return false;
	levels = (unsigned int)(mode - SV39) + 3;
	if (!is_address(address, levels))
		return false;
	table = (root & NUMBER_MASK) << PAGE_SHIFT;
	for (unsigned int level = levels; level-- > 0;) {
		unsigned int shift = PAGE_SHIFT + level * TABLE_BITS;
		uint64_t number = address >> shift & ((1u << TABLE_BITS) - 1);
		uint64_t entry = 0, page;

		read_physical(table + 8 * number, &entry, sizeof(entry));
		if (!(entry & ENTRY_VALID))
			return false;
		page = (entry >> ENTRY_SHIFT & NUMBER_MASK) << PAGE_SHIFT;
		if (entry & ENTRY_LEAF) {
			uint64_t within = (UINT64_C(1) << shift) - 1;

			*out = (page & ~within) | (address & within);
			return entry & ENTRY_PROGRAM;
		}
		table = page;
	}
	return false;
}

static bool copy_in_page(uint64_t address, unsigned int bytes, void *out)
{
	uint64_t physical;

	if (registers_copy_memory(address, bytes, out))
		return true;
	if (!root_register || !cpu_physical_memory_rw ||
	    !physical_of(address, &physical))
		return false;
	read_physical(physical, out, bytes);
	return true;
}

bool usermemory_copy(uint64_t address, unsigned int bytes, void *out)
{
	for (unsigned int copied = 0; copied < bytes;) {
		unsigned int part = PAGE - (unsigned int)(address % PAGE);

		if (part > bytes - copied)
			part = bytes - copied;
		if (!copy_in_page(address, part, (char *)out + copied))
			return false;
		copied += part;
		address += part;
	}
	return true;
}
