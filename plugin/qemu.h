/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qemu - what the plugin uses of QEMU 10.0, which no package declares.
 *
 * Traps, found the hard way (QEMU 10.0 with -icount, one thread for all CPUs):
 * - The CPU index passed to callbacks is that of the CPU which translated the block.
 *   Which one executes it, only current_cpu tells. For the same reason the inline and
 *   conditional callbacks, which count by that index, are not used at all.
 * - In a callback QEMU refuses to read its clock, unless no CPU seems to execute.
 */
#ifndef QEMU_H
#define QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;

struct qemu_info {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus, max_vcpus;
	} system;
};

enum { QEMU_READS_NO_REGISTERS, QEMU_READS_REGISTERS };

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_register;

/* Of GLib, which QEMU brings along. */
struct garray {
	char *data;
	unsigned int len;
};

struct gbytearray {
	uint8_t *data;
	unsigned int len;
};

struct qemu_register_name {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
};

typedef void (*qemu_udata_cb)(unsigned int unreliable_cpu_index, void *userdata);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id,
				       void (*cb)(qemu_plugin_id_t, unsigned int));
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t,
						      struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_udata_cb cb,
					  int flags, void *userdata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    qemu_udata_cb cb, int flags,
					    void *userdata);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    void (*cb)(qemu_plugin_id_t, void *),
				    void *userdata);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t index);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to,
			     size_t size);

struct garray *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct qemu_plugin_register *handle,
			      struct gbytearray *out);
bool qemu_plugin_read_memory_vaddr(uint64_t addr, struct gbytearray *out, size_t size);

struct gbytearray *g_byte_array_new(void);
struct gbytearray *g_byte_array_set_size(struct gbytearray *array, unsigned int size);
char *g_array_free(struct garray *array, int free_elements);

/* Ends QEMU if it cannot make a thread. */
struct gthread *g_thread_new(const char *name, void *(*run)(void *), void *userdata);

/* No part of the plugin interface, but exported: the CPU that this thread runs, and the
 * request that it stop after the block it is in. */
enum { QEMU_CLOCK_VIRTUAL = 1 };
extern __thread void *current_cpu __attribute__((tls_model("initial-exec")));
void cpu_exit(void *cpu);

/* Likewise: what its clock is made of (see icount.h), and how a turn begins and ends. */
enum { QEMU_ALL_TIMERS = -1 };
extern char timers_state[];
int64_t icount_get(void);
int64_t icount_get_raw(void);
int64_t icount_to_ns(int64_t instructions);
void icount_prepare_for_run(void *cpu, int64_t budget);
void icount_process_data(void *cpu);
int64_t qemu_clock_deadline_ns_all(int clock, int attributes);
bool cpu_thread_is_idle(void *cpu);
void cpu_loop_exit(void *cpu);

/* Likewise, and not needed but on riscv64: physical memory. */
void cpu_physical_memory_rw(uint64_t address, void *buffer, uint64_t bytes, bool writes)
	__attribute__((weak));

/* Likewise: how a thread takes the lock that all of QEMU's state is under, and how one
 * waits for a condition; made to be replaced, by QEMU's own profiler of them. */
typedef void (*qemu_lock_fn)(void *lock, const char *file, int line);
typedef void (*qemu_wait_fn)(void *condition, void *lock, const char *file, int line);
extern qemu_lock_fn bql_mutex_lock_func;
extern qemu_wait_fn qemu_cond_wait_func;
void qemu_mutex_unlock_impl(void *lock, const char *file, int line);
bool qemu_in_vcpu_thread(void);
int qemu_shutdown_requested_get(void);

/* Likewise: a class by its name, and its function that tells a CPU of an interrupt. */
typedef void (*qemu_interrupt_fn)(void *cpu, int mask);
void *object_class_by_name(const char *name);
void icount_handle_interrupt(void *cpu, int mask);

#endif
