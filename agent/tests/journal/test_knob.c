/* SPDX-License-Identifier: MIT */
/* knob, by way of the journal: what can be set, and how it is found and read. */
#include <errno.h>
#include <sys/prctl.h>

#include "files/tree.h"
#include "journal/journalfile.h"
#include "tests/check.h"
#include "tests/fakemachine.h"

static void settings_that_are_none_are_refused(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "turbo", 0, "1") == -EINVAL);
	CHECK(set(&j, "governor", 0, "") == -EINVAL);
	CHECK(set(&j, "governor", 0, "a b") == -EINVAL);
	CHECK(set(&j, "governor", 7, "performance") == -ENOENT);
	write_text(RT_RUNTIME, "two words\n");
	CHECK(set(&j, "rt_runtime_us", 0, "-1") == -EINVAL);
	CHECK(knob_holds(RT_RUNTIME, "two words"));
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
}

static bool instance_is_there(int owner)
{
	char name[96];

	snprintf(name, sizeof(name), "/root/sys/kernel/tracing/instances/rtscope.%d",
		 owner);
	return access(path_of(name), F_OK) == 0;
}

static void a_tracing_instance_is_removed_with_the_run_that_made_it(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "trace_instance", 42, "made") == 0);
	CHECK(instance_is_there(42));
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
	CHECK(!instance_is_there(42));
	CHECK(journals() == 0);
}

static void a_tracing_instance_of_a_killed_process_is_removed_by_the_next(void)
{
	reset();
	set_and_die("trace_instance", 43, "made");
	CHECK(instance_is_there(43));

	CHECK(replay() == 0);
	CHECK(!instance_is_there(43));
	CHECK(strcmp(told, "trace_instance ") == 0);
	CHECK(journals() == 0);
}

static void an_instance_out_of_reach_is_not_taken_for_removed(void)
{
	const char *const tracing = "/root/sys/kernel/tracing";
	char aside[128];

	reset();
	set_and_die("trace_instance", 44, "made");
	snprintf(aside, sizeof(aside), "%s", path_of("/root/sys/kernel/aside"));
	CHECK(rename(path_of(tracing), aside) == 0);
	CHECK(mkdir(path_of(tracing), 0755) == 0); /* not mounted, and cannot be */
	CHECK(replay() == 1);
	CHECK(journals() == 1);

	CHECK(rmdir(path_of(tracing)) == 0);
	CHECK(rename(aside, path_of(tracing)) == 0);
	CHECK(replay() == 0);
	CHECK(!instance_is_there(44));
}

/* The kernel marks the chosen one in what it gives back: here the file is as written. */
static void the_tracer_hwlat_of_a_killed_process_is_put_back_by_the_next(void)
{
	static const char *const files[] = { "tracing_thresh", "hwlat_detector/width",
					     "hwlat_detector/window" };
	static const char *const knobs[] = { "tracing_thresh", "hwlat_width",
					     "hwlat_window" };
	char name[96];

	reset();
	mkdir(path_of("/root/sys/kernel/tracing/hwlat_detector"), 0700);
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "/root/sys/kernel/tracing/%s", files[i]);
		write_text(name, "500000\n");
		set_and_die(knobs[i], 0, "7");
		CHECK(knob_holds(name, "7"));
		CHECK(replay() == 0);
		CHECK(knob_holds(name, "500000"));
		CHECK(journals() == 0);
	}
}

static void only_the_governor_is_per_cpu(void)
{
	CHECK(knob_is_per_cpu("governor"));
	CHECK(!knob_is_per_cpu("rt_runtime_us"));
	CHECK(!knob_is_per_cpu("no_such_knob"));
}

static void a_value_is_a_word(void)
{
	char longest[KNOB_VALUE_MAX + 1];

	memset(longest, 'x', sizeof(longest));
	longest[KNOB_VALUE_MAX] = '\0';
	CHECK(!knob_value_ok(longest));
	longest[KNOB_VALUE_MAX - 1] = '\0';
	CHECK(knob_value_ok(longest));
	CHECK(knob_value_ok("-1") && knob_value_ok("energy_performance.x-9"));
	CHECK(knob_value_ok("0-1,4"));
	CHECK(!knob_value_ok("") && !knob_value_ok("a\n") && !knob_value_ok("a/b"));
}

static void a_knob_with_several_places_is_found_by_its_number(void)
{
	struct knob_place place = { root, "governor", 1023 };
	char path[256], small[16];

	CHECK(knob_path(&place, path, sizeof(path)) == 0);
	CHECK(strcmp(path, &GOVERNOR(1023)[strlen("/root")]) == 0);
	place = (struct knob_place){ root, "idle_state", 3 * KNOB_STRIDE + 17 };
	CHECK(knob_path(&place, path, sizeof(path)) == 0);
	CHECK(strcmp(path, "/sys/devices/system/cpu/cpu17/cpuidle/state3/disable") ==
	      0);
	CHECK(knob_path(&place, small, sizeof(small)) == -ENAMETOOLONG);
	place.name = "memory_group";
	CHECK(knob_path(&place, path, sizeof(path)) == -EINVAL);
}

/* Its name stands for its index, which is 1 for the loopback wherever there is one. */
static void a_setting_of_an_interface_is_found_by_its_index(void)
{
	struct knob_place place = { root, "gro_flush_timeout", 1 };
	char path[256], value[KNOB_VALUE_MAX];

	CHECK(knob_path(&place, path, sizeof(path)) == 0);
	CHECK(strcmp(path, "/sys/class/net/lo/gro_flush_timeout") == 0);
	place.name = "coalescing";
	CHECK(knob_path(&place, path, sizeof(path)) == 0);
	CHECK(strcmp(path, "/sys/class/net/lo/device/uevent") == 0);
	/* it has no interrupts, and an emulator may not know the question */
	CHECK(knob_read(&place, value) < 0 && knob_read(&place, value) != KNOB_GONE);
	place.index = INT32_MAX;
	CHECK(knob_path(&place, path, sizeof(path)) == KNOB_GONE);
	CHECK(knob_read(&place, value) == KNOB_GONE);
	CHECK(knob_write(&place, "0.1.0") == KNOB_GONE);
}

static void only_a_thread_of_an_interrupt_has_its_priority_set(void)
{
	struct knob_place place = { root, "irq_priority", getpid() };
	char value[KNOB_VALUE_MAX], name[16];

	CHECK(knob_read(&place, value) == KNOB_GONE);
	CHECK(prctl(PR_GET_NAME, name) == 0 && prctl(PR_SET_NAME, "irq/9-ours") == 0);
	CHECK(knob_read(&place, value) == KNOB_GONE); /* a program has a command line */
	CHECK(knob_write(&place, "fifo.1") == KNOB_GONE);
	CHECK(prctl(PR_SET_NAME, name) == 0);
}

/* What had the setting is no more: the next start has nothing to put back. */
static void a_setting_goes_with_its_interface(void)
{
	const struct journal_entry entry = { "gro_flush_timeout", INT32_MAX, "0" };

	CHECK(journalfile_put_back(root, &entry) == 0);
}

/* On a plain file, so a value that was chosen is not marked afterwards. */
static void of_several_words_the_marked_one_is_the_value(void)
{
	const struct knob_place place = { root, "transparent_hugepage", 0 };
	char value[KNOB_VALUE_MAX];

	reset();
	write_text(HUGEPAGE, "always [madvise] never\n");
	CHECK(knob_read(&place, value) == 0 && strcmp(value, "madvise") == 0);
	write_text(HUGEPAGE, "none voluntary (full)\n");
	CHECK(knob_read(&place, value) == 0 && strcmp(value, "full") == 0);
	write_text(HUGEPAGE, "nothing is marked\n");
	CHECK(knob_read(&place, value) == -EINVAL);
}

static void a_value_too_long_to_be_put_back_whole_is_refused(void)
{
	const struct knob_place place = { root, "rt_runtime_us", 0 };
	char text[KNOB_VALUE_MAX + 1], value[KNOB_VALUE_MAX];

	reset();
	memset(text, 'f', sizeof(text));
	text[KNOB_VALUE_MAX] = '\0';
	write_text(RT_RUNTIME, text);
	CHECK(knob_read(&place, value) == -EOVERFLOW);
	text[KNOB_VALUE_MAX - 1] = '\0';
	write_text(RT_RUNTIME, text);
	CHECK(knob_read(&place, value) == 0 && strcmp(value, text) == 0);
}

static void a_try_that_failed_is_as_if_it_had_not_been_made(void)
{
	struct journal j;

	reset();
	CHECK(unlink(path_of(RT_RUNTIME)) == 0);
	CHECK(symlink("/proc/self/comm", path_of(RT_RUNTIME)) == 0);
	journal_init(&j);
	CHECK(journal_take_back(&j, root) == 0);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(set(&j, "rt_runtime_us", 0, "longer-than-15-bytes") == KNOB_DID_NOT_HOLD);
	CHECK(journal_take_back(&j, root) == 0);
	CHECK(!knob_holds(RT_RUNTIME, "longer-than-15-"));
	CHECK(strcmp(text_of(own_journal()), "governor 0 schedutil\n") == 0);

	/* and what was made before it stays, also when there is nothing to take back */
	CHECK(set(&j, "governor", 7, "performance") == -ENOENT);
	CHECK(journal_take_back(&j, root) == 0);
	CHECK(knob_holds(GOVERNOR(0), "performance"));
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
}

int main(void)
{
	make_machine();
	settings_that_are_none_are_refused();
	a_tracing_instance_is_removed_with_the_run_that_made_it();
	a_tracing_instance_of_a_killed_process_is_removed_by_the_next();
	an_instance_out_of_reach_is_not_taken_for_removed();
	the_tracer_hwlat_of_a_killed_process_is_put_back_by_the_next();
	only_the_governor_is_per_cpu();
	a_value_is_a_word();
	a_knob_with_several_places_is_found_by_its_number();
	a_setting_of_an_interface_is_found_by_its_index();
	only_a_thread_of_an_interrupt_has_its_priority_set();
	a_setting_goes_with_its_interface();
	of_several_words_the_marked_one_is_the_value();
	a_value_too_long_to_be_put_back_whole_is_refused();
	a_try_that_failed_is_as_if_it_had_not_been_made();
	CHECK(tree_remove(base) == 0);
	return 0;
}
