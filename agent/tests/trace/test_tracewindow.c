/* SPDX-License-Identifier: MIT */
/* tracewindow: what is kept around the worst wake-ups, and what is told to be gone. */
#include "tests/tracepages.h"
#include "trace/tracewindow.h"

#define POOL 32 /* so a window of 8 pages for each of two CPUs, 8 for a kept one */

static struct tracewindow w;

static void open_window(unsigned int limit)
{
	const struct tracepage_layout layout = layout_of_tests();

	CHECK(tracewindow_init(&w, &layout, 2, limit, POOL) == 0);
}

/* A page with an event at its begin and one at its end. */
static void add(unsigned int cpu, int64_t from_ns, int64_t to_ns)
{
	unsigned char *page = tracewindow_place(&w, cpu);

	begin_page(page, (uint64_t)from_ns);
	put_event(page, 1, 0, 0, 8);
	put_event(page, 1, (uint32_t)(to_ns - from_ns), 0, 8);
	tracewindow_add(&w, cpu);
}

static void want(int64_t expiry_ns, int64_t wake_ns)
{
	const struct trace_kept k = {
		.wakeup = { .seq = 1, .expiry_ns = expiry_ns, .wake_ns = wake_ns },
		.cpu = 0,
		.own = 0,
		.from_ns = expiry_ns - 10,
		.to_ns = wake_ns + 10,
	};

	tracewindow_want(&w, &k);
}

static bool holds(const struct trace_kept *k, unsigned int cpu, uint64_t seq)
{
	for (unsigned int i = 0; i < k->pages; i++)
		if (w.page[k->page[i]].cpu == cpu && w.page[k->page[i]].seq == seq)
			return true;
	return false;
}

static unsigned int free_pages(void)
{
	unsigned int n = 0;

	for (uint32_t i = w.free_head; i != TRACEWINDOW_NONE; i = w.next_free[i])
		n++;
	return n;
}

static void pages_before_and_after_are_kept_on_every_cpu(void)
{
	open_window(4);
	for (int i = 0; i < 4; i++)
		add(0, 100 * i, 100 * i + 90);
	add(1, 0, 380);
	want(150, 250);
	add(0, 400, 490); /* comes later, and does not concern it */
	add(1, 255, 300); /* does */

	CHECK(w.count == 1);
	CHECK(w.kept[0].pages == 4);
	CHECK(holds(&w.kept[0], 0, 1) && holds(&w.kept[0], 0, 2));
	CHECK(holds(&w.kept[0], 1, 0) && holds(&w.kept[0], 1, 1));
	CHECK(!w.kept[0].truncated && !w.kept[0].overwritten);
	tracewindow_free(&w);
}

static void kept_pages_outlive_the_window(void)
{
	open_window(4);
	add(0, 100, 190);
	want(150, 180);
	for (int i = 2; i < 40; i++)
		add(0, 100 * i, 100 * i + 90);

	CHECK(w.ring[0].count == 8);
	CHECK(w.kept[0].pages == 1 && holds(&w.kept[0], 0, 0));
	CHECK(free_pages() == POOL - 9);
	tracewindow_free(&w);
}

static void of_the_run_the_worst_are_kept_worst_first(void)
{
	open_window(2);
	add(0, 100, 190);
	want(110, 120);
	add(0, 200, 290);
	want(210, 250);
	add(0, 300, 390);
	want(310, 330);
	want(340, 345);

	CHECK(w.count == 2);
	CHECK(w.kept[0].wakeup.expiry_ns == 210);
	CHECK(w.kept[1].wakeup.expiry_ns == 310);
	CHECK(w.kept[1].pages == 1);
	tracewindow_free(&w);
}

static void of_equal_ones_the_earlier_stays(void)
{
	open_window(1);
	want(110, 120);
	want(210, 220);

	CHECK(w.kept[0].wakeup.expiry_ns == 110);
	tracewindow_free(&w);
}

static void a_wakeup_longer_than_the_window_is_told_to_be_cut(void)
{
	open_window(2);
	for (int i = 1; i < 20; i++)
		add(0, 100 * i, 100 * i + 90);
	want(150, 1950);

	CHECK(w.kept[0].truncated);
	CHECK(w.kept[0].pages == 8);
	tracewindow_free(&w);
}

static void what_the_kernel_has_lost_within_is_told(void)
{
	unsigned char *page;

	open_window(2);
	add(0, 100, 190);
	page = tracewindow_place(&w, 0);
	begin_page(page, 200);
	put_event(page, 1, 0, 0, 8);
	set_commit(page, commit_of(page) | UINT64_C(1) << 31);
	tracewindow_add(&w, 0);
	add(0, 300, 390);
	want(310, 330); /* the loss was before all that it wants */
	want(150, 250);

	CHECK(w.kept[0].overwritten && w.kept[0].wakeup.expiry_ns == 150);
	CHECK(!w.kept[1].overwritten);
	CHECK(w.ring[0].missed == 1);
	tracewindow_free(&w);
}

/* A page with an event, before which the kernel has overwritten others. */
static void add_after_loss(unsigned int cpu, int64_t at_ns)
{
	unsigned char *page = tracewindow_place(&w, cpu);

	begin_page(page, (uint64_t)at_ns);
	put_event(page, 1, 0, 0, 8);
	set_commit(page, commit_of(page) | UINT64_C(1) << 31);
	tracewindow_add(&w, cpu);
}

static void a_loss_of_all_that_was_wanted_is_told(void)
{
	open_window(3);
	add(0, 100, 190);
	want(550, 560); /* before the page is read that says so */
	want(195, 198); /* ends in the page before, and begins in it */
	add_after_loss(0, 900);
	want(600, 620); /* and after it */
	CHECK(w.kept[0].wakeup.expiry_ns == 600 && w.kept[0].pages == 0);
	CHECK(w.kept[0].overwritten);
	CHECK(w.kept[1].wakeup.expiry_ns == 550 && w.kept[1].pages == 0);
	CHECK(w.kept[1].overwritten);
	CHECK(w.kept[2].pages == 1 && w.kept[2].overwritten);

	want(950, 1000); /* the loss was before it */
	CHECK(w.kept[0].wakeup.expiry_ns == 950 && !w.kept[0].overwritten);
	add(0, 2000, 2100);
	add_after_loss(0, 3000); /* and this one after it */
	CHECK(!w.kept[0].overwritten);
	tracewindow_free(&w);
}

static void a_damaged_page_is_counted_and_leaves_a_gap(void)
{
	unsigned char *page;

	open_window(2);
	add(0, 100, 190);
	page = tracewindow_place(&w, 0);
	begin_page(page, 200);
	set_commit(page, 4000);
	tracewindow_add(&w, 0);
	add(0, 300, 390);
	want(150, 350);

	CHECK(w.ring[0].damaged == 1 && w.ring[0].pages == 2);
	CHECK(holds(&w.kept[0], 0, 0) && holds(&w.kept[0], 0, 2));
	CHECK(w.kept[0].overwritten); /* part of what it wants is not there */
	tracewindow_free(&w);
}

static void when_memory_is_short_the_least_is_given_up_and_says_so(void)
{
	open_window(8);
	for (int n = 0; n < 6; n++) {
		for (int i = 0; i < 8; i++)
			add(0, 10000 * n + 100 * i, 10000 * n + 100 * i + 90);
		want(10000 * n + 10, 10000 * n + 700 + n);
	}

	CHECK(w.count == 6);
	CHECK(!w.kept[0].given_up && w.kept[0].pages == 8);
	CHECK(w.kept[5].given_up && w.kept[5].pages == 0);
	for (int i = 0; i < 100; i++)
		add(1, 100000 + 10 * i, 100005 + 10 * i);
	CHECK(w.ring[1].count == 8);
	tracewindow_free(&w);
}

static void every_page_is_given_back(void)
{
	open_window(1);
	for (int i = 0; i < 200; i++) {
		add((unsigned int)i % 2, 100 * i, 100 * i + 90);
		want(100 * i + 10, 100 * i + 20 + i);
	}
	CHECK(w.kept[0].pages > 0);
	while (w.kept[0].pages > 0)
		want(1000000, 2000000 + w.kept[0].wakeup.wake_ns);
	CHECK(free_pages() == POOL - 16); /* what both windows hold */
	tracewindow_free(&w);
}

int main(void)
{
	pages_before_and_after_are_kept_on_every_cpu();
	kept_pages_outlive_the_window();
	of_the_run_the_worst_are_kept_worst_first();
	of_equal_ones_the_earlier_stays();
	a_wakeup_longer_than_the_window_is_told_to_be_cut();
	what_the_kernel_has_lost_within_is_told();
	a_loss_of_all_that_was_wanted_is_told();
	a_damaged_page_is_counted_and_leaves_a_gap();
	when_memory_is_short_the_least_is_given_up_and_says_so();
	every_page_is_given_back();
	return 0;
}
