/* SPDX-License-Identifier: MIT */
/* Which threads have their events on the CPUs; the kernel's part is tested by watching. */
#include "watch/watchplaces.h"

#include "tests/check.h"

static void room_is_kept_for_real_time_threads(void)
{
	struct watchplaces p = { .cpus = 2 };

	CHECK(watchplaces_have_room(&p, false) && watchplaces_have_room(&p, true));
	p.threads = WATCHPLACES_ORDINARY;
	CHECK(!watchplaces_have_room(&p, false) && watchplaces_have_room(&p, true));
	p.threads = WATCHPLACES_THREADS;
	CHECK(!watchplaces_have_room(&p, true));
}

static void there_is_no_room_where_the_kernel_refuses(void)
{
	struct watchplaces p = { .cpus = 2, .err = -EACCES };

	CHECK(!watchplaces_have_room(&p, true));
}

static void a_machine_with_more_cpus_than_pay_has_no_room(void)
{
	struct watchplaces p;
	struct cpulist online = { 0 };

	CHECK(cpulist_parse("0-64", &online) == 0);
	watchplaces_open(&p, &online);
	CHECK(p.err == WATCHPLACES_CPUS && p.cpus == 0);
	CHECK(!watchplaces_have_room(&p, true));
	watchplaces_close(&p);
}

int main(void)
{
	room_is_kept_for_real_time_threads();
	there_is_no_room_where_the_kernel_refuses();
	a_machine_with_more_cpus_than_pay_has_no_room();
	return 0;
}
