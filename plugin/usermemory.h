/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usermemory - reads the memory of a program while its thread is in the kernel.
 *
 * QEMU reads memory as the CPU does. On riscv64 that may not read a page of a program in
 * supervisor mode (SUM of sstatus is off but where the kernel copies), so its page tables
 * are walked here: the RISC-V Instruction Set Manual, Volume II, "Virtual Address
 * Translation Process".
 */
#ifndef USERMEMORY_H
#define USERMEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* `root`: the register that says where page tables are; NULL: QEMU reads all. Of the
 * first CPU; false: the CPU lacks it. */
bool usermemory_init(const char *root);

/* False: cannot be read, or not all of it. */
bool usermemory_copy(uint64_t address, unsigned int bytes, void *out);

#endif
