/* SPDX-License-Identifier: MIT */
#include "measure/kthreads.h"
#include "tests/captured.h"

static bool delta_is(const struct kthreads *before, const struct kthreads *after,
		     const char *expected)
{
	char line[1024];

	capture();
	emit_begin(&out, "t");
	kthreads_emit_delta(&out, before, after);
	snprintf(line, sizeof(line), "{\"type\":\"t\",\"kernel_threads\":%s}\n",
		 expected);
	return capture_is(line);
}

static void the_largest_user_of_time_stands_first(void)
{
	struct kthread old[] = { { 10, 0, 1000, "rcu_preempt" },
				 { 11, 1, 500, "irq/27-eth0" },
				 { 12, 0, 70, "kworker/0:1" } };
	struct kthread now[] = { { 10, 1, 1005, "rcu_preempt" },
				 { 11, 1, 900, "irq/27-eth0" },
				 { 12, 0, 70, "kworker/0:1" } };

	CHECK(delta_is(
		&(struct kthreads){ old, 3 }, &(struct kthreads){ now, 3 },
		"[{\"tid\":11,\"name\":\"irq/27-eth0\",\"kind\":\"irq\",\"cpu\":1,"
		"\"cpu_time_ns\":400},"
		"{\"tid\":10,\"name\":\"rcu_preempt\",\"kind\":\"kernel\",\"cpu\":1,"
		"\"cpu_time_ns\":5}],\"kernel_threads_left_out\":0,"
		"\"kernel_threads_left_out_ns\":0"));
}

static void a_thread_that_started_during_the_run_counts_from_0(void)
{
	struct kthread now[] = { { 99, 2, 123, "kworker/2:3" } };

	CHECK(delta_is(&(struct kthreads){ NULL, 0 }, &(struct kthreads){ now, 1 },
		       "[{\"tid\":99,\"name\":\"kworker/2:3\",\"kind\":\"kernel\","
		       "\"cpu\":2,\"cpu_time_ns\":123}],\"kernel_threads_left_out\":0,"
		       "\"kernel_threads_left_out_ns\":0"));
}

static void a_number_that_was_used_again_is_no_negative_time(void)
{
	struct kthread old[] = { { 5, 0, 1000, "old" } };
	struct kthread now[] = { { 5, 0, 10, "new" } };

	CHECK(delta_is(
		&(struct kthreads){ old, 1 }, &(struct kthreads){ now, 1 },
		"[],\"kernel_threads_left_out\":0,\"kernel_threads_left_out_ns\":0"));
}

static void what_does_not_fit_the_list_is_counted_and_summed(void)
{
	struct kthread now[40];
	const char *got;
	unsigned int listed = 0;

	for (int i = 0; i < 40; i++)
		now[i] = (struct kthread){ i + 1, 0, i + 1, "k" };
	capture();
	emit_begin(&out, "t");
	kthreads_emit_delta(&out, &(struct kthreads){ NULL, 0 },
			    &(struct kthreads){ now, 40 });
	got = capture_end();

	for (const char *s = got; (s = strstr(s, "\"tid\"")); s++)
		listed++;
	CHECK(listed == 32);
	/* the eight smallest: 1 + 2 + ... + 8 */
	CHECK(strstr(got, "\"kernel_threads_left_out\":8,"
			  "\"kernel_threads_left_out_ns\":36"));
}

static void taking_finds_kernel_threads_only(void)
{
	struct kthreads found;

	CHECK(kthreads_take(&found) == 0);
	for (unsigned int i = 0; i < found.count; i++)
		CHECK(found.thread[i].tid != getpid());
	kthreads_free(&found);
	CHECK(found.count == 0);
}

int main(void)
{
	the_largest_user_of_time_stands_first();
	a_thread_that_started_during_the_run_counts_from_0();
	a_number_that_was_used_again_is_no_negative_time();
	what_does_not_fit_the_list_is_counted_and_summed();
	taking_finds_kernel_threads_only();
	return 0;
}
