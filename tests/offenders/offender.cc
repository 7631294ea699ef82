// A thread `cycle` that copies a string of its own in each of its periods.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <string>
#include <thread>
#include <vector>

static volatile char sink;

struct Report {
	std::vector<std::string> lines;

	__attribute__((noinline)) void append(const std::string &line)
	{
		lines.push_back(line);
		sink = lines.back()[0];
		lines.pop_back();
	}
};

int main()
{
	mlockall(MCL_CURRENT | MCL_FUTURE);
	std::thread worker([] {
		sched_param param = {};
		Report report;
		const std::string line(100, 'x');
		timespec next;

		param.sched_priority = 61;
		pthread_setname_np(pthread_self(), "cycle");
		pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
		clock_gettime(CLOCK_MONOTONIC, &next);
		for (;;) {
			next.tv_nsec += 1000000;
			if (next.tv_nsec >= 1000000000) {
				next.tv_nsec -= 1000000000;
				next.tv_sec++;
			}
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
			report.append(line);
		}
	});
	worker.join();
}
