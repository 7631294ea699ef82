/* A loop of 1 ms that allocates, writes, and waits for a lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile double sum;

static void *hold(void *none)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		for (int i = 0; i < 300000; i++)
			sum += i;
		pthread_mutex_unlock(&lock);
		usleep(7000);
	}
	return none;
}

static void step(int number, FILE *null)
{
	char *text = malloc(2000 + number % 500);

	memset(text, 'x', 100);
	pthread_mutex_lock(&lock);
	sum += 1;
	pthread_mutex_unlock(&lock);
	fprintf(null, "%.20s %d\n", text, number);
	free(text);
}

int main(void)
{
	FILE *null = fopen("/dev/null", "w");
	pthread_t other;

	if (!null || pthread_create(&other, NULL, hold, NULL))
		return 1;
	for (int number = 0;; number++) {
		step(number, null);
		usleep(1000);
	}
}
