/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bounded - what rtscope's plugin is compared with: bounds the CPUs' quantum and does
 * nothing else, or does not even that. For lab/virtual_speed.py.
 *
 *   quantum=N     each turn of a CPU ends after N instructions, by one call at each
 *                 block; 0: QEMU translates as without a plugin
 *   summary=FILE  at exit: how many instructions QEMU itself has counted, as JSON
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugin/qemu.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int qemu_plugin_version = 4;

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
				 int argc, char **argv);

static struct {
	uint64_t quantum;
	const char *summary;
	void *cpu;
	uint64_t left;
} bounded;

static void at_block(unsigned int index, void *userdata)
{
	uint64_t instructions = (uintptr_t)userdata;

	(void)index;
	if (current_cpu != bounded.cpu) {
		bounded.cpu = current_cpu;
		bounded.left = bounded.quantum;
	}
	if (bounded.left > instructions) {
		bounded.left -= instructions;
		return;
	}
	bounded.cpu = NULL;
	cpu_exit(current_cpu);
}

static void at_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	qemu_plugin_register_vcpu_tb_exec_cb(
		tb, at_block, QEMU_READS_NO_REGISTERS,
		(void *)(uintptr_t)qemu_plugin_tb_n_insns(tb));
}

static void at_exit(qemu_plugin_id_t id, void *userdata)
{
	FILE *file = fopen(bounded.summary, "w");

	(void)id;
	(void)userdata;
	if (!file) {
		perror("bounded: summary");
		return;
	}
	fprintf(file, "{\"instructions\": %" PRId64 "}\n", icount_get_raw());
	fclose(file);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
			char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], "quantum=", 8) == 0)
			bounded.quantum = strtoull(argv[i] + 8, NULL, 10);
		else if (strncmp(argv[i], "summary=", 8) == 0)
			bounded.summary = argv[i] + 8;
	if (!bounded.summary) {
		fprintf(stderr, "bounded: summary=FILE is missing\n");
		return -1;
	}
	if (bounded.quantum)
		qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
