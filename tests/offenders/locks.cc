// A real-time thread `cycle` that shares a std::mutex or std::shared_mutex with `holder`.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <sys/mman.h>
#include <thread>

using namespace std::chrono_literals;

static std::mutex mutex;
static std::shared_mutex shared;
static volatile long sum;

__attribute__((noinline)) static void step(bool to_read)
{
	if (to_read) {
		std::shared_lock<std::shared_mutex> lock(shared);
		sum = sum + 1;
	} else {
		std::lock_guard<std::mutex> lock(mutex);
		sum = sum + 1;
	}
}

static void spin()
{
	const auto end = std::chrono::steady_clock::now() + 3ms;

	while (std::chrono::steady_clock::now() < end)
		sum = sum + 1;
}

__attribute__((noinline)) static void hold(bool to_read)
{
	if (to_read) {
		std::unique_lock<std::shared_mutex> lock(shared);
		spin();
	} else {
		std::lock_guard<std::mutex> lock(mutex);
		spin();
	}
}

int main(int argc, char **argv)
{
	const bool to_read = argc > 1 && std::strcmp(argv[1], "reader") == 0;

	mlockall(MCL_CURRENT | MCL_FUTURE);
	std::thread holder([=] {
		pthread_setname_np(pthread_self(), "holder");
		for (;;) {
			hold(to_read);
			std::this_thread::sleep_for(4ms);
		}
	});
	std::thread cycle([=] {
		sched_param param{};

		param.sched_priority = 61;
		pthread_setname_np(pthread_self(), "cycle");
		if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
			std::exit(3);
		for (;;) {
			step(to_read);
			std::this_thread::sleep_for(1ms);
		}
	});
	cycle.join();
}
