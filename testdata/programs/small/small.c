// Many small allocations: the main thread grows search trees and linked lists,
// all threads then walk them. No page belongs to one object alone.
// usage: small [keys] [walks]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 64 };

struct tree {
	struct tree *left, *right;
	uint64_t key;
	double weight;
};

struct list {
	struct list *next;
	uint64_t key;
};

static struct tree *trees[BUCKETS];
static struct list *lists[BUCKETS];

static int insert(struct tree **at, uint64_t key)
{
	while (*at)
		at = key < (*at)->key ? &(*at)->left : &(*at)->right;
	*at = malloc(sizeof **at);
	if (!*at)
		return -1;
	**at = (struct tree){.key = key, .weight = 1.0 / (double)(1 + key % 1000)};
	return 0;
}

static int push(struct list **head, uint64_t key)
{
	struct list *l = malloc(sizeof *l);
	if (!l)
		return -1;
	*l = (struct list){.next = *head, .key = key};
	*head = l;
	return 0;
}

static double walk_tree(const struct tree *t)
{
	return t ? t->weight + walk_tree(t->left) + walk_tree(t->right) : 0;
}

static double walk_list(const struct list *l)
{
	uint64_t s = 0;
	for (; l; l = l->next)
		s ^= l->key;
	return (double)(s % 1009);
}

static void free_tree(struct tree *t)
{
	if (!t)
		return;
	free_tree(t->left);
	free_tree(t->right);
	free(t);
}

static double walk_all(void)
{
	double sum[BUCKETS], s = 0;

#pragma omp parallel for schedule(static)
	for (int b = 0; b < BUCKETS; b++)
		sum[b] = walk_tree(trees[b]) + walk_list(lists[b]);
	for (int b = 0; b < BUCKETS; b++)
		s += sum[b];
	return s;
}

int main(int argc, char **argv)
{
	long keys = argc > 1 ? atol(argv[1]) : 200000;
	int walks = argc > 2 ? atoi(argv[2]) : 10;
	uint64_t key = 88172645463325252u;
	double s = 0;

	for (long k = 0; k < keys; k++) {
		key ^= key << 13, key ^= key >> 7, key ^= key << 17;
		int b = (int)(k * BUCKETS / keys);
		if (insert(&trees[b], key) || push(&lists[b], key))
			return 1;
	}
	for (int w = 0; w < walks; w++)
		s += walk_all();
	printf("checksum %.17g\n", s);
	for (int b = 0; b < BUCKETS; b++) {
		free_tree(trees[b]);
		for (struct list *l = lists[b], *next; l; l = next)
			next = l->next, free(l);
	}
	return 0;
}
