/* readlog FILE...: the records of a log (plugin/wire.h), a line each, in the order of
 * their times, after the sites of small blocks: TID NAME ARGS PAYLOAD. Ends with 1 where the file breaks a rule. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../plugin/wire.h"

static const char *const names[] = {
    "0",   "hello", "tracker", "pause", "resume", "module", "start",  "end",   "region", "site",  "alloc",
    "free", "bind",  "move",    "note",  "pinned", "moved",  "dynamic", "loop", "prefer", "homes", "forked", "tid",
};

struct found {
    const struct nmo_log_record *record;
    uint32_t tid;
};
static struct found found[1 << 20];
static size_t count;
static int broken;

static void rule(int kept, const char *what) {
    broken |= !kept;
    if (!kept)
        fprintf(stderr, "readlog: %s\n", what);
}

/* qsort need not be stable: records of a thread are kept apart by where they are. */
static int by_time(const void *a, const void *b) {
    const struct nmo_log_record *p = ((const struct found *)a)->record, *q = ((const struct found *)b)->record;
    if (p->time != q->time)
        return p->time < q->time ? -1 : 1;
    return p < q ? -1 : p > q;
}

static void read_chunk(const char *chunk, const char *end) {
    uint64_t time = 0;
    uint32_t tid = ((const struct nmo_log_chunk *)chunk)->tid;
    for (const char *at = chunk + sizeof(struct nmo_log_chunk); at + sizeof(struct nmo_log_record) <= end;) {
        const struct nmo_log_record *r = (const void *)at;
        if (!r->bytes)
            return;
        if (r->bytes & NMO_LOG_UNFINISHED) {
            at += r->bytes - NMO_LOG_UNFINISHED;
            continue;
        }
        rule(r->bytes % 8 == 0 && r->bytes >= sizeof *r && at + r->bytes <= end, "a record's length");
        rule(r->time >= time, "times of a chunk fall");
        rule(r->op < sizeof names / sizeof *names, "an op");
        rule(tid != 0, "a chunk of nobody's");
        if (broken)
            return;
        time = r->time;
        if (r->op == NMO_LOG_TID)
            tid = (uint32_t)r->args[0];
        else
            found[count++] = (struct found){r, tid};
        at += r->bytes;
    }
}

static void print(const struct found *f) {
    const struct nmo_log_record *r = f->record;
    const char *payload = (const char *)(r + 1);
    printf("%u %s", f->tid, names[r->op]);
    for (int i = 0; i < 5; i++)
        printf(" %lld", (long long)r->args[i]);
    if (r->op == NMO_MODULE || r->op == NMO_NOTE || r->op == NMO_PINNED)
        printf(" %s", payload);
    if (r->op == NMO_SITE)
        for (uint64_t i = 0; i < r->args[1]; i++)
            printf(" %llx", ((const unsigned long long *)payload)[i]);
    if (r->op == NMO_ALLOC) {
        const struct nmo_alloc *a = (const void *)payload;
        printf(" site %u rank %u ordinal %u kind %u overlaps %u", a->site, a->rank, a->ordinal, a->kind, a->overlaps);
    }
    if (r->op == NMO_THREAD_START) {
        const struct nmo_thread *t = (const void *)payload;
        printf(" start %llx stack %llu pinned %u", (long long)t->start, (long long)(t->stack_hi - t->stack_lo), t->pinned);
    }
    if (r->op == NMO_HOMES) {
        printf(" ");
        for (uint64_t i = 0; i < r->args[1]; i++)
            printf("%c", (unsigned char)payload[i] == NMO_LOG_NOWHERE ? '-' : '0' + payload[i]);
    }
    printf("\n");
}

/* By read: to look at a hole through a mapping takes room on a disk in memory. */
static char *load(const char *path, struct stat *st) {
    struct nmo_log_head h;
    int fd = open(path, O_RDONLY);
    char *base = NULL;
    if (fd >= 0 && !fstat(fd, st) && pread(fd, &h, sizeof h, 0) == sizeof h && h.used >= sizeof h && h.used <= (uint64_t)st->st_size) {
        base = malloc(h.used);
        for (uint64_t at = 0; base && at < h.used;) {
            ssize_t n = pread(fd, base + at, h.used - at, (off_t)at);
            if (n <= 0)
                base = NULL;
            at += (uint64_t)n;
        }
    }
    if (fd >= 0)
        close(fd);
    return base;
}

/* The slots of each site: "small SITE SLOTS". */
static uint64_t print_small(const struct nmo_small *slot, uint32_t slots) {
    static uint32_t of[1 << 16];
    uint64_t all = 0;
    memset(of, 0, sizeof of);
    for (uint32_t i = 0; i < slots; i++)
        if (slot[i].page)
            all++, of[slot[i].site % (1 << 16)]++;
    for (int site = 0; site < 1 << 16; site++)
        if (of[site])
            printf("small %d %u\n", site, of[site]);
    return all;
}

static void read_log(const char *path) {
    struct stat st;
    const char *base = load(path, &st);
    rule(base != NULL, "no log");
    if (broken)
        return;
    const struct nmo_log_head *h = (const void *)base;
    uint64_t first = h->small_at + h->small_slots * sizeof(struct nmo_small);
    rule((st.st_mode & 0777) == 0600, "the file's mode");
    rule(!memcmp(h->magic, NMO_LOG_MAGIC "\0\0\0", 16) && h->version == NMO_LOG_VERSION && h->head_bytes == NMO_LOG_HEAD_BYTES, "the head");
    rule(h->used <= h->limit && h->used >= first && (h->used - first) % h->chunk_bytes == 0, "the end of the chunks");
    if (broken)
        return;
    count = 0;
    for (uint64_t at = first; !broken && at + h->chunk_bytes <= h->used; at += h->chunk_bytes)
        read_chunk(base + at, base + at + h->chunk_bytes);
    qsort(found, count, sizeof *found, by_time);
    uint64_t small = print_small((const struct nmo_small *)(base + h->small_at), h->small_slots);
    printf("log pid %u lost %llu small %llu\n", h->pid, (long long)h->lost, (long long)small);
    for (size_t i = 0; i < count; i++)
        print(&found[i]);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        read_log(argv[i]);
    return broken;
}
