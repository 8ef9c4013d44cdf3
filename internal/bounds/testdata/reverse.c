// Answers omp_get_thread_num with T-1-t where it returns to an address of the
// program that is listed in REVERSE (hexadecimal, relative to its load address,
// a comma after each), and says on standard error how often it did.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uintptr_t sites[256];
static int count;
static long answers;
static int (*thread_num)(void), (*num_threads)(void);

__attribute__((constructor)) static void begin(void)
{
	char *p = getenv("REVERSE");

	thread_num = (int (*)(void))dlsym(RTLD_NEXT, "omp_get_thread_num");
	num_threads = (int (*)(void))dlsym(RTLD_NEXT, "omp_get_num_threads");
	while (p && *p && count < 256) {
		sites[count++] = strtoul(p, &p, 16);
		p += *p == ',';
	}
}

__attribute__((destructor)) static void end(void)
{
	fprintf(stderr, "reversed %ld\n", answers);
}

int omp_get_thread_num(void)
{
	void *to = __builtin_return_address(0);
	Dl_info in;

	for (int i = 0; dladdr(to, &in) && i < count; i++)
		if ((uintptr_t)to - (uintptr_t)in.dli_fbase == sites[i]) {
			__atomic_add_fetch(&answers, 1, __ATOMIC_RELAXED);
			return num_threads() - 1 - thread_num();
		}
	return thread_num();
}
