/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * registers - reads registers and memory of the CPU that executes.
 *
 * In QEMU 10.0 this works in callbacks that were registered as reading registers; the
 * handles are the same for all CPUs of a board.
 */
#ifndef REGISTERS_H
#define REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "qemu.h"

/* While a CPU is being added. NULL: it has none of that name. */
struct qemu_plugin_register *registers_find(const char *name);

/* False: cannot be read. */
bool registers_read(struct qemu_plugin_register *handle, uint64_t *out);
bool registers_read_memory(uint64_t address, unsigned int bytes, uint64_t *out);
/* So many bytes at once: each reading costs as much as 1,000 bytes. */
bool registers_copy_memory(uint64_t address, unsigned int bytes, void *out);

#endif
