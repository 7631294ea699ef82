/* SPDX-License-Identifier: MIT */
/* A user's program in C++17, with all that rtscope_task.hpp has. 0 if all was right. */
#include <rtscope_task.hpp>

#include <mutex>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

namespace
{

struct Pose {
	double x, y;
	long number;
};

bool passes_on(rtscope::App &app, rtscope::Report &report)
{
	rtscope::Latest<Pose, 2> latest;
	rtscope::Queue<Pose, 8> queue;
	rtscope::Log log({ "pose", 0, 0, 0 });
	rtscope::Mutex mutex;
	long cycles = 0;
	auto work = [&](const rtsc_cycle &cycle) {
		const std::lock_guard<rtscope::Mutex> held(mutex);
		const Pose pose{ 1.5, 2.5, ++cycles };

		latest.write(pose);
		queue.push(pose);
		rtsc_log_print(log.get(), "cycle %ld, late %d", cycles, int(cycle.late));
		return cycles < 3;
	};
	rtsc_config config = rtscope::periodic("pose", 0, nullptr, 1000000);
	Pose seen{}, first{};

	config.policy = RTSC_POLICY_OTHER;
	rtscope::Task task(app, config, work, report);
	app.go();
	task.join();
	return latest.read(seen, 1) == 3 && seen.number == 3 && queue.pop(first) &&
	       first.number == 1 && queue.dropped() == 0 && log.dropped() == 0 &&
	       task.statistics() && task.statistics()->cycles == 3;
}

bool is_woken_and_stopped(rtscope::App &app, rtscope::Report &report)
{
	const int fd = eventfd(1, EFD_CLOEXEC);
	rtsc_config config{};
	int cycles = 0;

	config.event = RTSC_EVENT_COUNTER;
	config.event_fd = fd;
	{
		std::vector<rtscope::Task> tasks;

		tasks.emplace_back(
			app, config, [&](const rtsc_cycle &) { ++cycles; }, report);
		for (;;) {
			const auto slot = tasks[0].statistics();

			if (slot && slot->cycles + slot->in_cycle > 0)
				break;
		}
	} /* stops and joins */
	close(fd);
	return cycles == 1;
}

bool says_what_it_could_not_have(rtscope::App &app, rtscope::Report &report)
{
	rtsc_config config = rtscope::periodic("none", 1, "x", 1000000);

	try {
		rtscope::Task task(app, config, [](const rtsc_cycle &) {}, report);
	} catch (const rtscope::Error &error) {
		return error.report().lacks > 0 && error.code().value() != 0;
	}
	return false;
}

} // namespace

int main()
{
	rtsc_setup setup{};
	rtscope::Report report{};

	setup.heap_bytes = setup.main_stack_bytes = RTSC_NONE;
	setup.unlocked = setup.private_statistics = true;
	rtscope::App app(setup, report);
	return passes_on(app, report) && is_woken_and_stopped(app, report) &&
			       says_what_it_could_not_have(app, report)
		       ? 0
		       : 1;
}
