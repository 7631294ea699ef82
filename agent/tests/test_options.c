/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "options.h"
#include "tests/check.h"

#define MAX_WORDS 160

static struct options o;
static char error[OPTIONS_TEXT];

/* Splits at spaces; the words stay where they are, as the options keep pointers. */
static int parse(const char *line)
{
	static char copy[2048];
	static char *argv[MAX_WORDS + 1];
	int argc = 1;

	argv[0] = (char *)"rtscope-agent";
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word && argc < MAX_WORDS;
	     word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	error[0] = '\0';
	return options_parse(argc, argv, &o, error);
}

static bool refused(const char *line, const char *why)
{
	if (parse(line) == -EINVAL && strstr(error, why))
		return true;
	fprintf(stderr, "%s: %s\n", line, error);
	return false;
}

static void the_defaults_are_these(void)
{
	CHECK(parse("measure --priority 99") == 0);
	CHECK(o.command == COMMAND_MEASURE);
	CHECK(!o.cpus_given && o.policy.kind == POLICY_FIFO && o.policy.priority == 99);
	CHECK(o.interval_ns == 1000000 && o.duration_ns == 10000000000 &&
	      o.phase_ns == 0);
	CHECK(o.worst == 16 && !o.hold_cpu_awake && o.knobs == 0);
	CHECK(strcmp(o.name, "rtscope") == 0);
	CHECK(!o.link.watch && !o.link.heartbeat && !o.user_given);
	CHECK(!o.trace && !o.growth);
}

static void all_options_of_a_measurement_arrive(void)
{
	CHECK(parse("measure --host-link --cpus 1,3 --policy rr --priority 7 "
		    "--interval-ns "
		    "200000 --duration-ns 5000000000 --phase-ns 31 --worst 64 --name x "
		    "--hold-cpu-awake --growth --set governor=performance --set "
		    "rt_runtime_us=-1") == 0);
	CHECK(o.link.watch && !o.link.heartbeat);
	CHECK(o.cpus_given && cpulist_count(&o.cpus) == 2 && cpulist_has(&o.cpus, 3));
	CHECK(o.policy.kind == POLICY_RR && o.policy.priority == 7);
	CHECK(o.interval_ns == 200000 && o.duration_ns == 5000000000 &&
	      o.phase_ns == 31);
	CHECK(o.worst == 64 && o.hold_cpu_awake && o.growth && o.knobs == 2);
	CHECK(strcmp(o.name, "x") == 0);
	CHECK(strcmp(o.knob[0].name, "governor") == 0);
	CHECK(strcmp(o.knob[0].value, "performance") == 0);
	CHECK(strcmp(o.knob[1].value, "-1") == 0);
	CHECK(!o.knob[0].indices);
}

static void the_worst_answers_to_an_event_are_traced_as_those_to_a_timer(void)
{
	CHECK(parse("measure --priority 99 --event futex --trace") == 0);
	CHECK(o.trace && strcmp(event_name(&o.event), "futex") == 0);
}

static void an_interval_is_a_period_of_the_tracer_timerlat(void)
{
	CHECK(parse("measure --policy other --event timerlat --interval-ns 100000") ==
	      0);
	CHECK(o.event.timerlat && !event_is_timer(&o.event) &&
	      strcmp(event_name(&o.event), "timerlat") == 0);
	CHECK(refused("measure --policy other --event timerlat --interval-ns 99000",
		      "100 us to 1 s"));
	CHECK(refused("measure --policy other --event timerlat --interval-ns 200500",
		      "100 us to 1 s"));
	CHECK(refused("measure --policy other --event timerlat:cpu=1", "timerlat"));
}

static void an_interval_is_a_window_of_the_tracer_hwlat(void)
{
	CHECK(parse("measure --policy other --event hwlat --interval-ns 1000000000") ==
	      0);
	CHECK(o.event.hwlat.asked && o.event.hwlat.threshold_us == 10 &&
	      o.event.hwlat.width_us == 500000);
	CHECK(parse("measure --policy other --event hwlat:threshold=1:width=99999 "
		    "--interval-ns 100000000") == 0);
	CHECK(o.event.hwlat.threshold_us == 1 && o.event.hwlat.width_us == 99999);
	CHECK(refused("measure --policy other --event hwlat:width=100000 "
		      "--interval-ns 100000000",
		      "less than the interval"));
	CHECK(refused("measure --policy other --event hwlat --interval-ns 99999000",
		      "100 ms or more"));
	CHECK(refused("measure --policy deadline --event hwlat --interval-ns 100000000",
		      "SCHED_DEADLINE"));
}

static void settings_to_apply_name_their_places(void)
{
	int from, to;

	CHECK(parse("apply --set irq_affinity:24,30-32=0-1,3 --set watchdog=0") == 0);
	CHECK(o.command == COMMAND_APPLY && o.knobs == 2 && !o.knob[1].indices);
	CHECK(strcmp(o.knob[0].name, "irq_affinity") == 0);
	CHECK(strcmp(o.knob[0].value, "0-1,3") == 0);
	CHECK(options_next_range(&o.knob[0].indices, &from, &to) == 1);
	CHECK(from == 24 && to == 24);
	CHECK(options_next_range(&o.knob[0].indices, &from, &to) == 1);
	CHECK(from == 30 && to == 32);
	CHECK(options_next_range(&o.knob[0].indices, &from, &to) == 0);

	CHECK(parse("hold --host-link --set watchdog=0") == 0);
	CHECK(o.command == COMMAND_HOLD);
	CHECK(parse("restore --applied") == 0 && o.applied_too);
	CHECK(parse("restore") == 0 && !o.applied_too);
}

static void settings_that_are_none_are_refused(void)
{
	static const char *const lists[] = {
		"",   ",", "1,",    "1,,2", "-1",       "2-1",
		"1-", "a", "1-2-3", "1;2",  "99999999",
	};
	char line[128];

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		snprintf(line, sizeof(line), "apply --set governor:%s=performance",
			 lists[i]);
		CHECK(refused(line, "bad option"));
	}
	CHECK(refused("apply", "what is to be set"));
	CHECK(refused("hold --host-link", "what is to be set"));
	CHECK(refused("measure --priority 99 --set governor:1=powersave",
		      "name no others"));
}

static void a_deadline_thread_gets_its_interval_as_period(void)
{
	CHECK(parse("measure --policy deadline --interval-ns 1000000") == 0);
	CHECK(o.policy.period_ns == 1000000 && o.policy.runtime_ns == 250000);
	CHECK(parse("measure --policy deadline --runtime-ns 1000000") == 0);
	CHECK(o.policy.runtime_ns == 1000000);
}

static void what_follows_the_first_operand_belongs_to_the_load(void)
{
	CHECK(parse("load --heartbeat --user 1000:100 --memory-limit 1048576 -- "
		    "stress-ng "
		    "--cpu 2 --cpus x") == 0);
	CHECK(o.command == COMMAND_LOAD && o.operands == 5);
	CHECK(strcmp(o.operand[0], "stress-ng") == 0);
	CHECK(strcmp(o.operand[3], "--cpus") == 0 && o.operand[5] == NULL);
	CHECK(o.link.watch && o.link.heartbeat);
	CHECK(o.user_given && o.uid == 1000 && o.gid == 100);
	CHECK(strcmp(o.memory_limit, "1048576") == 0);

	CHECK(parse("load true --log x") == 0);
	CHECK(o.operands == 3 && !o.log_path);
}

static void the_other_commands_take_their_operands(void)
{
	CHECK(parse("keep --host-link /tmp/rtscope-x") == 0 &&
	      o.command == COMMAND_KEEP);
	CHECK(parse("read -- /proc/stat -x") == 0 && o.operands == 2);
	CHECK(parse("restore") == 0 && o.command == COMMAND_RESTORE);
	CHECK(parse("version") == 0 && o.command == COMMAND_VERSION);
}

static void commands_that_are_none_are_refused(void)
{
	CHECK(refused("", "no command"));
	CHECK(refused("mesure", "unknown command: mesure"));
	CHECK(refused("--cpus 1", "unknown command"));
	CHECK(refused("load", "no command after --"));
	CHECK(refused("load --", "no command after --"));
	CHECK(refused("keep", "one directory"));
	CHECK(refused("keep a b", "one directory"));
	CHECK(refused("read", "no paths"));
	CHECK(refused("measure --priority 1 extra", "unexpected: extra"));
}

static void values_out_of_range_are_refused(void)
{
	static const char *const bad[] = {
		"--cpus 3-1",
		"--cpus 1024",
		"--policy realtime",
		"--priority 0",
		"--priority 100",
		"--priority 5x",
		"--priority -1",
		"--runtime-ns 1023",
		"--interval-ns 9999",
		"--interval-ns 10000000001",
		"--interval-ns 1e6",
		"--duration-ns 0",
		"--duration-ns 99999999999999999999",
		"--phase-ns -1",
		"--worst 65",
		"--worst -1",
		"--set governor",
		"--set governor=",
		"--set governor=a/b",
		"--set governor=a;b",
		"--set turbo=1",
		"--set =1",
		"--set ../x=1",
		"--user 1000",
		"--user a:b",
		"--user -1:0",
		"--user 4294967295:0",
		"--user 0:4294967296",
		"--memory-limit 1/2",
		"--no-such-option",
		"-x",
		"--cpus",
	};
	char line[128];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "measure %s", bad[i]);
		CHECK(refused(line, "bad option or value"));
	}
}

static void combinations_that_cannot_measure_are_refused_with_the_reason(void)
{
	CHECK(refused("measure", "policy fifo needs a --priority"));
	CHECK(refused("measure --policy rr", "policy rr needs a --priority"));
	CHECK(refused("measure --policy other --priority 5", "takes no --priority"));
	CHECK(refused("measure --policy idle --priority 5", "takes no --priority"));
	CHECK(refused("measure --policy deadline --priority 5", "takes no --priority"));
	CHECK(refused("measure --policy deadline --cpus 0", "cannot be pinned"));
	CHECK(refused("measure --policy deadline --runtime-ns 1000001", "exceeds"));
	CHECK(refused("measure --policy other --duration-ns 1999999", "two intervals"));
}

static void more_settings_than_there_is_room_for_are_refused(void)
{
	char line[2048] = "measure --priority 1";

	for (int i = 0; i < OPTIONS_MAX_KNOBS; i++)
		strcat(line, " --set governor=a");
	CHECK(parse(line) == 0);
	strcat(line, " --set governor=a");
	CHECK(refused(line, "bad option or value"));
}

static void a_message_longer_than_its_room_is_cut(void)
{
	static char word[400];

	memset(word, 'w', sizeof(word) - 1);
	CHECK(refused(word, "unknown command: www"));
	CHECK(strlen(error) < OPTIONS_TEXT);
}

static void a_list_of_tasks_takes_a_window_and_nothing_else(void)
{
	CHECK(parse("tasks --host-link") == 0);
	CHECK(o.command == COMMAND_TASKS && o.window_ns == 0);
	CHECK(parse("tasks --window-ns 1000000000") == 0 && o.window_ns == 1000000000);
	CHECK(refused("tasks --window-ns 1", "bad option or value"));
	CHECK(refused("tasks all", "unexpected: all"));
}

static void a_load_is_watched_in_windows_of_a_second_unless_others_are_named(void)
{
	CHECK(parse("load -- true") == 0 && o.window_ns == 1000000000);
	CHECK(parse("load --window-ns 6000000000 -- true") == 0);
	CHECK(o.window_ns == 6000000000);
}

static void a_process_to_watch_is_named_with_its_probes(void)
{
	CHECK(parse("watch --pid 17 --duration-ns 5 --stacks 8 "
		    "--probe malloc:624944:/lib/a:b.so --probe free:1:/c") == 0);
	CHECK(o.command == COMMAND_WATCH && o.pid == 17 && o.stacks == 8);
	CHECK(o.duration_ns == 5 && o.probes == 2);
	CHECK(strcmp(o.probe[0].name, "malloc") == 0 && o.probe[0].offset == 624944);
	CHECK(strcmp(o.probe[0].path, "/lib/a:b.so") == 0);
	CHECK(refused("watch", "which process"));
	CHECK(refused("watch --pid 0", "bad option"));
	CHECK(refused("watch --pid 1 2", "unexpected"));
	CHECK(refused("watch --pid 1 --stacks 5000", "bad option"));
	CHECK(refused("watch --pid 1 --probe malloc:1:relative", "bad option"));
	CHECK(refused("watch --pid 1 --probe malloc:-1:/c", "bad option"));
	CHECK(refused("watch --pid 1 --probe malloc:/c", "bad option"));
}

static void a_demonstration_has_scripts_one_cpu_and_an_end(void)
{
	CHECK(parse("demo --lock-memory --inherit --cpus 1 -- a:other:0:run=1 "
		    "b:fifo:9:run=1") == 0);
	CHECK(o.command == COMMAND_DEMO && o.operands == 2);
	CHECK(o.lock_memory && o.inherit && cpulist_has(&o.cpus, 1));
	CHECK(parse("demo -- a:other:0:run=1") == 0);
	CHECK(!o.lock_memory && !o.inherit && !o.cpus_given);
	CHECK(refused("demo", "1 to 6 scripts"));
	CHECK(refused("demo -- a b c d e f g", "1 to 6 scripts"));
	CHECK(refused("demo --cpus 0-1 -- a:other:0:run=1", "one CPU"));
	CHECK(refused("demo -- a:other:0:run=1 b:fifo:99:run=1", "b:fifo:99"));
	CHECK(refused("demo --duration-ns 20000000001 -- a:other:0:run=1", "at most"));
}

int main(void)
{
	the_defaults_are_these();
	all_options_of_a_measurement_arrive();
	the_worst_answers_to_an_event_are_traced_as_those_to_a_timer();
	an_interval_is_a_period_of_the_tracer_timerlat();
	an_interval_is_a_window_of_the_tracer_hwlat();
	settings_to_apply_name_their_places();
	settings_that_are_none_are_refused();
	a_deadline_thread_gets_its_interval_as_period();
	what_follows_the_first_operand_belongs_to_the_load();
	the_other_commands_take_their_operands();
	commands_that_are_none_are_refused();
	values_out_of_range_are_refused();
	combinations_that_cannot_measure_are_refused_with_the_reason();
	more_settings_than_there_is_room_for_are_refused();
	a_message_longer_than_its_room_is_cut();
	a_list_of_tasks_takes_a_window_and_nothing_else();
	a_load_is_watched_in_windows_of_a_second_unless_others_are_named();
	a_process_to_watch_is_named_with_its_probes();
	a_demonstration_has_scripts_one_cpu_and_an_end();
	return 0;
}
