/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * codetimes - a block of a program that is begun more often in one piece than 32 bits
 * count; then a piece in which it is begun once. Writes the file it is given.
 */
#include "../code.c"

struct cpus cpus = { .now = &cpus.cpu[0] };
struct clock virtual_clock;
struct icount icount;
__thread void *current_cpu;

int main(int argc, char **argv)
{
	static const struct block block = { .address = 0x1000, .instructions = 2 };
	static int64_t cpu[2], zero; /* its numbers are all 0 */

	icount.count = icount.bias = &zero;
	current_cpu = cpu;
	if (argc != 2 || code_init(argv[1], 100))
		return 1;
	code_count(true);
	code_at_block(&block);
	counts_now()->times[block.number] =
		UINT32_MAX - 1; /* takes a minute otherwise */
	for (int i = 0; i < 3; i++)
		code_at_block(&block);
	code_end_piece(7, 0);
	code_at_block(&block);
	code_end_piece(7, 0);
	return !code_end();
}
