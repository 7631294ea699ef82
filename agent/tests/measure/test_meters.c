/* SPDX-License-Identifier: MIT */
/* A tree as a PC with a graphics card has it; this machine may have none of it. */
#include "measure/meters.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "tests/captured.h"
#include "tests/check.h"

static char root[] = "/tmp/rtscope-meters-XXXXXX";

static void put(const char *folder, const char *file, const char *text)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "mkdir -p '%s/%s' && printf '%%b\\n' '%s' > '%s/%s/%s'", root, folder,
		 text, root, folder, file);
	CHECK(system(command) == 0);
}

#define ZONE "sys/class/powercap/intel-rapl"
#define CHIP "sys/class/hwmon/hwmon"

static void make_tree(void)
{
	put(ZONE, "enabled", "1"); /* the class itself counts nothing */
	put(ZONE ":0", "name", "package-0");
	put(ZONE ":0", "energy_uj", "123456");
	put(ZONE ":0:0", "name", "core");
	put(ZONE ":0:0", "energy_uj", "23456");
	put(CHIP "0", "name", "amdgpu");
	put(CHIP "0", "temp1_input", "51000");
	put(CHIP "0", "temp1_label", "edge");
	put(CHIP "0", "temp1_crit", "100000");
	put(CHIP "0", "power1_average", "9000000");
	put(CHIP "1", "name", "nct6775");
	put(CHIP "1", "temp2_input", "-3000");
	put(CHIP "1", "temp3_input", "asleep");
	put("proc", "meminfo",
	    "MemTotal:  1000 kB\\nMemFree: 1 kB\\nMemAvailable: 400 kB");
}

static void each_meter_has_its_name_and_number(void)
{
	static struct meters m;

	meters_open(&m, root);
	CHECK(m.count == 6);
	capture();
	emit_begin(&out, "tick");
	meters_emit(&m, &out);
	CHECK(capture_is(
		"{\"type\":\"tick\",\"energy_uj\":{\"package-0/intel-rapl:0\":123456,"
		"\"core/intel-rapl:0:0\":23456},\"power_uw\":{\"amdgpu/power1/0\":"
		"9000000},\"device_mc\":{\"amdgpu/edge/0\":51000,\"nct6775/temp2/1\":"
		"-3000},\"memory_used_kb\":600}\n"));
	meters_close(&m);
	CHECK(m.count == 0);
}

static void a_machine_without_any_emits_nothing(void)
{
	static struct meters m;

	meters_open(&m, "/nowhere");
	capture();
	emit_begin(&out, "tick");
	meters_emit(&m, &out);
	CHECK(capture_is("{\"type\":\"tick\"}\n"));
	meters_close(&m);
}

static void more_than_there_is_room_for_are_left_out(void)
{
	static struct meters m;
	char command[512];

	snprintf(command, sizeof(command),
		 "mkdir '%s/" CHIP "2'; for i in $(seq %d); do "
		 "echo 1 > '%s/" CHIP "2'/temp${i}_input; done",
		 root, 2 * METERS_MAX, root);
	CHECK(system(command) == 0);
	meters_open(&m, root);
	CHECK(m.count == METERS_MAX);
	meters_close(&m);
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(root));
	make_tree();
	each_meter_has_its_name_and_number();
	a_machine_without_any_emits_nothing();
	more_than_there_is_room_for_are_left_out();
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command) == 0 ? 0 : 1;
}
