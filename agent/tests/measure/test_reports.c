/* SPDX-License-Identifier: MIT */
/* Who else uses a tracer, in files as tracefs has them, and who changes its settings. */
#include "measure/reports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

static char root[] = "/tmp/test-reports-XXXXXX";

static void has(const char *directory, const char *tracer)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/current_tracer", root, directory);
	file = fopen(path, "w");
	CHECK(file && fprintf(file, "%s\n", tracer) > 0 && fclose(file) == 0);
}

static void make(const char *directory)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", root, directory);
	CHECK(mkdir(path, 0700) == 0);
}

static void a_tracer_of_anybody_is_in_use(void)
{
	static const char lats[] = "timerlat\nosnoise\n";

	CHECK(!reports_in_use(root, lats)); /* no tracing at all */
	has("", "nop");
	CHECK(!reports_in_use(root, lats));
	has("", "osnoise");
	CHECK(reports_in_use(root, lats));
	has("", "nop");
	make("instances");
	make("instances/a");
	make("instances/timerlat_top");
	has("instances/a", "function");
	CHECK(!reports_in_use(root, lats));
	has("instances/timerlat_top", "timerlat");
	CHECK(reports_in_use(root, lats));
	CHECK(!reports_in_use(root, "hwlat\n"));
	has("instances/timerlat_top", "a_tracer_of_a_name_that_is_longer_than_any");
	CHECK(!reports_in_use(root, lats));
}

static void a_setting_that_somebody_changes_is_noticed(void)
{
	static struct run run;
	const struct knob_place place = { "", "rt_runtime_us", 0 };

	CHECK(!reports_changed(&run));
	run.setting[0].knob = place.name;
	run.settings = 1;
	if (knob_read(&place, run.setting[0].value))
		return; /* not in this container */
	CHECK(!reports_changed(&run));
	strcat(run.setting[0].value, "0");
	CHECK(reports_changed(&run) && run.changed == &run.setting[0]);
	knob_read(&place, run.setting[0].value);
	CHECK(reports_changed(&run)); /* also if it is put back */
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(root));
	a_tracer_of_anybody_is_in_use();
	a_setting_that_somebody_changes_is_noticed();
	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK(system(command) == 0);
	return 0;
}
