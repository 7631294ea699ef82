/*
 * A loop of 1 kHz; with -DSLOWER an algorithm of it computes more, at marked lines, and
 * does nothing else otherwise. C++ for code of its library that is put into functions.
 */
#include <numeric>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <time.h>

static volatile long sum;

template <typename T> static inline T weighted(const std::vector<T> &some, T by)
{
	T kept = 0;

	for (const T &one : some)
		kept += one * by;
#ifdef SLOWER
	for (int again = 0; again < 40; again++)
		kept ^= std::accumulate(some.begin(), some.end(), kept); /* put into it */
#endif
	return kept;
}

__attribute__((noinline)) static void compute(int number)
{
	for (int tap = 0; tap < 40; tap++)
		sum = sum + tap * number;
#ifdef SLOWER
	if (number % 50 == 0)
		for (int tap = 0; tap < 20000; tap++)
			sum = sum + tap; /* each fiftieth */
#endif
}

int main()
{
	struct sched_param param = {};
	std::vector<long> some(64, 3);
	struct timespec due;

	param.sched_priority = 80;
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	clock_gettime(CLOCK_MONOTONIC, &due);
	for (int number = 1;; number++) {
		due.tv_nsec += 1000000;
		if (due.tv_nsec >= 1000000000) {
			due.tv_nsec -= 1000000000;
			due.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
		compute(number);
		sum = sum + weighted(some, (long)number);
	}
}
