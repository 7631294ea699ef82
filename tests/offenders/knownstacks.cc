// Calls malloc and touches pages through the C and C++ libraries, and says of each place
// by which callers: its own backtrace. An allocation is known by its size, a touched page
// by its address, whoever looks from outside.
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

static const int SITES = 6, DEPTHS = 8, FIRST_SIZE = 3000, PAGE = 4096;

static bool telling = true;
static char *pages;
static std::atomic<bool> stop;
static volatile char sink;
static int now_id;
static int zero_fd;

__attribute__((noinline)) static void tell(const char *kind, unsigned long key)
{
	void *frame[200];
	int frames;

	if (!telling)
		return;
	frames = backtrace(frame, 200);
	printf("%s %lx", kind, key);
	// the first is that of this function
	for (int i = 1; i < frames; i++)
		printf(" %lx", (unsigned long)frame[i]);
	printf("\n");
}

static size_t size_of(int id) { return FIRST_SIZE + 16 * (size_t)id; }
static char *page_of(int id) { return pages + (size_t)PAGE * id; }

__attribute__((noinline)) static void allocate()
{
	tell("malloc", size_of(now_id));
	void *p = malloc(size_of(now_id));
	sink = *(volatile char *)p;
	free(p);
}

static int compare_allocating(const void *a, const void *b)
{
	if (now_id >= 0)
		allocate();
	now_id = -1;
	return *(const int *)a - *(const int *)b;
}

static void on_signal(int) { allocate(); }

__attribute__((noinline)) static void allocation_site(int site, int id)
{
	now_id = id;
	switch (site) {
	case 0:
		allocate();
		break;
	case 1: {
		int some[] = { 3, 1, 2 };
		qsort(some, 3, sizeof(int), compare_allocating);
		break;
	}
	case 2: {
		std::string text;
		tell("malloc", size_of(id));
		text.assign(size_of(id) - 1, 'x'); // and one for the end
		sink = text[0];
		break;
	}
	case 3: {
		std::once_flag once;
		std::call_once(once, allocate);
		break;
	}
	case 4: {
		static char text[64 * 1024];
		memset(text, 'x', size_of(id) - 1);
		text[size_of(id) - 1] = 0;
		tell("malloc", size_of(id));
		free(strdup(text));
		break;
	}
	case 5:
		raise(SIGUSR1);
		break;
	}
	sink = 0;
}

__attribute__((noinline)) static void touch()
{
	tell("fault", (unsigned long)page_of(now_id));
	*page_of(now_id) = 1;
	sink = 1;
}

static int compare_touching(const void *a, const void *b)
{
	if (now_id >= 0)
		touch();
	now_id = -1;
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void fault_site(int site, int id)
{
	now_id = id;
	switch (site) {
	case 0:
		touch();
		break;
	case 1: {
		int some[] = { 3, 1, 2 };
		qsort(some, 3, sizeof(int), compare_touching);
		break;
	}
	case 2:
		tell("fault", (unsigned long)page_of(id));
		memset(page_of(id), id, PAGE);
		break;
	case 3:
		tell("fault", (unsigned long)page_of(id));
		sprintf(page_of(id), "%d %s", id, "formatted");
		break;
	case 4:
		tell("fault", (unsigned long)page_of(id));
		if (read(zero_fd, page_of(id), 8) != 8)
			abort();
		break;
	case 5: {
		std::once_flag once;
		std::call_once(once, touch);
		break;
	}
	}
	sink = 0;
}

__attribute__((noinline)) static void deeper(void (*site)(int, int), int depth, int id)
{
	volatile char room[40 + 24 * 7];

	room[depth] = 1;
	if (depth)
		deeper(site, depth - 1, id);
	else
		site(id % SITES, id);
	sink = room[depth];
}

static void once_each()
{
	for (int id = 0; id < SITES * DEPTHS; id++) {
		deeper(allocation_site, id / SITES, id);
		deeper(fault_site, id / SITES, id);
	}
	madvise(pages, (size_t)PAGE * SITES * DEPTHS, MADV_DONTNEED);
}

int main()
{
	void *warm[4];

	zero_fd = 0;
	pages = (char *)mmap(NULL, (size_t)PAGE * SITES * DEPTHS,
			     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(pages, (size_t)PAGE * SITES * DEPTHS, MADV_NOHUGEPAGE);
	signal(SIGUSR1, on_signal);
	backtrace(warm, 4); // loads what it needs
	FILE *zero = fopen("/dev/zero", "r");
	zero_fd = fileno(zero);
	std::thread worker([] {
		// one call for all: those that tell have the same callers as the others
		do {
			once_each();
			if (telling) {
				printf("thread %ld\n", (long)syscall(SYS_gettid));
				fflush(stdout);
			}
			telling = false;
			usleep(200);
		} while (!stop);
	});
	getchar();
	stop = true;
	worker.join();
	return 0;
}
