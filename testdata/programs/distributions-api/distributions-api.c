// Places memory by every distribution of numaopt.h and asks the kernel itself
// (move_pages) where the pages are. Prints a line for each, "ok" where every page
// is where numaopt_owner says. usage: distributions-api
#define _GNU_SOURCE
#include <numaopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, MOST = 1 << 16 };

// Node of each page by the kernel's word, -1 where there is none. Its numbers are
// the ordinals where all nodes have memory and CPUs.
static int home[MOST];

static long ask(char *p, size_t bytes)
{
	static void *page[MOST];
	size_t n = (bytes + PAGE - 1) / PAGE;
	for (size_t i = 0; i < n; i++)
		page[i] = p + i * PAGE;
	return syscall(SYS_move_pages, 0, n, page, NULL, home, 0) ? -1 : (long)n;
}

// Whole pages alone: distributions here are made of them.
static void judge(const char *name, char *p, const numaopt_dist *d, const numaopt_report *r)
{
	long n = ask(p, d->bytes), wrong = 0, used[NUMAOPT_MAX_NODES] = {0};
	for (long i = 0; i < n; i++) {
		int owner = numaopt_owner(d, (size_t)i * PAGE);
		wrong += owner >= 0 && home[i] != owner;
		if (home[i] >= 0)
			used[home[i]]++;
		if (i % 97 == 0 && numaopt_home(p + i * PAGE) != home[i])
			wrong++;
	}
	printf("%s %s: %ld of %ld pages elsewhere, error %d;", n > 0 && !wrong && !r->error ? "ok" : "WRONG", name, wrong, n, r->error);
	for (int i = 0; i < numaopt_nodes(); i++)
		printf(" %ld", used[i]);
	printf("\n");
}

static void fresh(const char *name, numaopt_dist d)
{
	numaopt_report r;
	char *p = numaopt_alloc(&d, &r);
	memset(p, 1, d.bytes);
	judge(name, p, &d, &r);
	numaopt_free(p, &d);
}

// Touched before, and placed twice.
static void moved(numaopt_dist d, numaopt_dist again)
{
	numaopt_report r;
	char *p = aligned_alloc(PAGE, d.bytes);
	for (size_t i = 0; i < d.bytes; i++)
		p[i] = (char)(i * 7);
	numaopt_distribute_to(p, d.bytes, &d, &r);
	judge("touched", p, &d, &r);
	numaopt_distribute_to(p, again.bytes, &again, &r);
	judge("placed again", p, &again, &r);
	for (size_t i = 0; i < d.bytes; i++)
		if (p[i] != (char)(i * 7)) {
			printf("WRONG contents\n");
			break;
		}
	if (numaopt_nodes() > 1 && (r.touched != r.pages || r.on_target != r.pages))
		printf("WRONG report: %zu of %zu of %zu\n", r.on_target, r.touched, r.pages);
	free(p);
}

static int downwards(void *arg, size_t offset)
{
	return *(int *)arg - (int)(offset / (4 * PAGE)) % *(int *)arg;
}

int main(void)
{
	static const unsigned weight[] = {3, 1, 2, 1, 1, 1, 1, 1};
	int nodes = numaopt_nodes();
	size_t bytes = 512 * PAGE;

	printf("%d nodes, on node %d\n", nodes, numaopt_node() < nodes ? 0 : -1);
	fresh("bind", numaopt_bind(bytes, nodes - 1));
	fresh("interleave", numaopt_interleave(bytes));
	fresh("weighted", numaopt_weighted_interleave(bytes, weight, 8));
	fresh("block-cyclic", numaopt_block_cyclic(bytes, 3 * PAGE));
	fresh("x-wise", numaopt_x_wise(48, 4, 2, PAGE));
	fresh("y-wise", numaopt_y_wise(16, 30, 1, 1024));
	fresh("z-wise", numaopt_z_wise(4, 4, 48, 1024));
	fresh("block-exclusive", numaopt_block_exclusive(48, 62, 1, 512, NUMAOPT_X, NUMAOPT_Y));
	fresh("custom", numaopt_custom(bytes, 4 * PAGE, downwards, &nodes));
	fresh("many ranges", numaopt_block_cyclic((size_t)17000 * PAGE, PAGE));
	moved(numaopt_x_wise(64, 1, 1, PAGE), numaopt_block_exclusive(8, 8, 1, PAGE, NUMAOPT_X, NUMAOPT_Y));
	return 0;
}
