/* arena.c: the arena of this process: made at start and at fork, filled in
 * place, handed to `numaopt profile` by its descriptor. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "emulate.h"

struct nmo_a_header *nmo_arena;
struct nmo_a_block *nmo_blocks;
struct nmo_a_page *nmo_pages;

static int arena_fd = -1;
static size_t arena_bytes;
static uint32_t text_lock;

static const struct {
    uint64_t stride, cap;
} shape[NMO_SECTIONS] = {
    [NMO_SEC_TEXT] = {1, 64 << 20},
    [NMO_SEC_NOTES] = {sizeof(struct nmo_a_note), 4096},
    [NMO_SEC_MODULES] = {sizeof(struct nmo_a_module), 65536},
    [NMO_SEC_FUNCS] = {sizeof(struct nmo_a_code), 65536},
    [NMO_SEC_LOOPS] = {sizeof(struct nmo_a_loop), 65536},
    [NMO_SEC_STARTS] = {sizeof(struct nmo_a_code), 32768},
    [NMO_SEC_THREADS] = {sizeof(struct nmo_a_thread), 65536},
    [NMO_SEC_SITES] = {sizeof(struct nmo_a_site), 1 << 20},
    [NMO_SEC_FRAMES] = {8, 64 << 20},
    [NMO_SEC_OBJECTS] = {sizeof(struct nmo_a_object), 64 << 20},
    [NMO_SEC_PAGES] = {sizeof(struct nmo_a_page), 256 << 20},
    [NMO_SEC_BLOCKS] = {sizeof(struct nmo_a_block), 512 << 20},
    [NMO_SEC_SMALL] = {sizeof(struct nmo_small), 1 << 20},
    [NMO_SEC_USES] = {sizeof(struct nmo_a_use), 64 << 20},
    [NMO_SEC_INTERVALS] = {sizeof(struct nmo_a_interval), 64 << 20}, /* and counts by node */
    [NMO_SEC_L1] = {0, 0}, /* by the model */
};

static size_t round_page(size_t n) { return (n + 4095) & ~(size_t)4095; }

/* Lays out the sections. Returns the bytes of the arena. */
static size_t lay_out(struct nmo_a_section *section, size_t model_bytes)
{
    size_t at = round_page(sizeof(struct nmo_a_header));
    for (int s = 0; s < NMO_SECTIONS; s++) {
        section[s].stride = s == NMO_SEC_L1 ? nmo_model.l1_stride : shape[s].stride;
        if (s == NMO_SEC_INTERVALS)
            section[s].stride += (nmo_model.nodes + 1) * sizeof(uint64_t);
        section[s].cap = s == NMO_SEC_L1 ? nmo_model.cpus : shape[s].cap;
        section[s].offset = at;
        section[s].count = s == NMO_SEC_L1 ? nmo_model.cpus : s == NMO_SEC_SMALL ? shape[s].cap : 1;
        at += round_page(s == NMO_SEC_L1 ? model_bytes : section[s].stride * section[s].cap);
    }
    section[NMO_SEC_NOTES].count = 0;
    section[NMO_SEC_MODULES].count = 0;
    section[NMO_SEC_THREADS].count = 0;
    return at;
}

static int map(void *where)
{
    int fd = memfd_create("numaopt-arena", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)arena_bytes) != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    void *p = mmap(where, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | (where ? MAP_FIXED : 0), fd, 0);
    if (p == MAP_FAILED) {
        close(fd);
        return -1;
    }
    /* Out of the numbers that the program hands out. */
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 512);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    arena_fd = fd;
    nmo_arena = p;
    return 0;
}

void *nmo_arena_at(enum nmo_section_id s, uint64_t index)
{
    return (char *)nmo_arena + nmo_arena->section[s].offset + index * nmo_arena->section[s].stride;
}

static void describe(void)
{
    struct timespec now;
    memcpy(nmo_arena->magic, NMO_ARENA_MAGIC, sizeof nmo_arena->magic);
    nmo_arena->version = NMO_ARENA_VERSION;
    nmo_arena->pid = (uint32_t)getpid();
    nmo_arena->ppid = (uint32_t)getppid();
    nmo_arena->period = (uint32_t)nmo_config.period;
    nmo_arena->cpus = nmo_model.cpus;
    nmo_arena->nodes = nmo_model.nodes;
    clock_gettime(CLOCK_REALTIME, &now);
    nmo_arena->start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Makes the arena, with the cache model in it. Returns 0, or -1 with errno. */
int nmo_arena_open(void)
{
    uint16_t node_of[NMO_CACHE_MAX_CPUS] = {0};
    struct nmo_a_section section[NMO_SECTIONS];
    for (unsigned i = 0; i < nmo_config.lines; i++)
        node_of[nmo_config.line[i].cpu] = (uint16_t)nmo_config.line[i].node;
    size_t model = nmo_cache_init(&nmo_model, nmo_config.cpus, nmo_config.nodes, node_of, nmo_config.l1, nmo_config.l2,
                                  nmo_config.llc);
    memset(section, 0, sizeof section);
    arena_bytes = lay_out(section, model);
    if (map(NULL) != 0)
        return -1;
    memcpy(nmo_arena->section, section, sizeof section);
    describe();
    nmo_cache_place(&nmo_model, nmo_arena_at(NMO_SEC_L1, 0));
    nmo_blocks = nmo_arena_at(NMO_SEC_BLOCKS, 0);
    nmo_pages = nmo_arena_at(NMO_SEC_PAGES, 0);
    nmo_blocks[0].live = NMO_DEAD;
    return 0;
}

/* In the child of a fork: an arena of its own at the same address, which knows
 * what the parent's knew and has counted nothing. */
void nmo_arena_child(void)
{
    int parent = arena_fd;
    struct nmo_a_header head = *nmo_arena;
    void *where = nmo_arena;
    if (map(where) != 0)
        return; /* goes on counting into the parent's, which is wrong and harmless */
    head.flags = (head.flags & NMO_ARENA_HELLO) | NMO_ARENA_FORKED;
    head.lost = 0;
    *nmo_arena = head;
    describe();
    for (int s = 0; s < NMO_SECTIONS; s++) {
        size_t bytes = s == NMO_SEC_L1 ? arena_bytes - head.section[s].offset : head.section[s].count * head.section[s].stride;
        char *to = (char *)nmo_arena + head.section[s].offset;
        if (s == NMO_SEC_SMALL)
            continue; /* sparse: its pages are copied below */
        for (size_t done = 0; done < bytes;) {
            ssize_t n = pread(parent, to + done, bytes - done, (off_t)(head.section[s].offset + done));
            if (n <= 0)
                break;
            done += (size_t)n;
        }
    }
    struct nmo_a_section *small = &head.section[NMO_SEC_SMALL];
    off_t end = (off_t)(small->offset + small->cap * small->stride), at = (off_t)small->offset;
    while ((at = lseek(parent, at, SEEK_DATA)) >= 0 && at < end) {
        if (pread(parent, (char *)nmo_arena + at, 4096, at) < 0)
            break;
        at = (at & ~(off_t)4095) + 4096;
    }
    for (uint64_t b = 1; b < head.section[NMO_SEC_BLOCKS].count; b++) {
        memset(nmo_blocks[b].l1, 0, sizeof nmo_blocks[b].l1);
        memset(nmo_blocks[b].miss, 0, sizeof nmo_blocks[b].miss);
        nmo_blocks[b].first = UINT16_MAX, nmo_blocks[b].last = 0;
    }
    for (uint64_t u = 1; u < head.section[NMO_SEC_USES].count; u++)
        memset(((struct nmo_a_use *)nmo_arena_at(NMO_SEC_USES, u))->count, 0, sizeof(uint64_t[3]));
    for (uint64_t i = 1; i < head.section[NMO_SEC_INTERVALS].count; i++)
        memset(&((struct nmo_a_interval *)nmo_arena_at(NMO_SEC_INTERVALS, i))->work, 0, (nmo_model.nodes + 2) * sizeof(uint64_t));
    for (unsigned c = 0; c < nmo_model.cpus; c++)
        nmo_cache_l1(&nmo_model, c)->clock = 0;
    struct nmo_a_loop *loop = nmo_arena_at(NMO_SEC_LOOPS, 0);
    for (uint64_t i = 0; i < head.section[NMO_SEC_LOOPS].count; i++)
        loop[i].entries = loop[i].run = loop[i].sweep = loop[i].varies = 0;
    text_lock = 0;
    close(parent);
    nmo_arena_send();
}

/* Hands the arena to `numaopt profile`. Returns 0, or -1. */
int nmo_arena_send(void)
{
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char hello[] = "arena", control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {hello, sizeof hello};
    struct msghdr msg = {&to, sizeof to, &iov, 1, control, sizeof control, 0};
    if (s < 0)
        return -1;
    strcpy(to.sun_path, nmo_config.socket);
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &arena_fd, sizeof(int));
    ssize_t n;
    do
        n = sendmsg(s, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    close(s);
    return n < 0 ? -1 : 0;
}

uint64_t nmo_arena_add(enum nmo_section_id s, uint64_t n)
{
    struct nmo_a_section *section = &nmo_arena->section[s];
    uint64_t at = __atomic_fetch_add(&section->count, n, __ATOMIC_RELAXED);
    if (at + n <= section->cap)
        return at;
    __atomic_fetch_sub(&section->count, n, __ATOMIC_RELAXED);
    __atomic_fetch_or(&nmo_arena->flags, NMO_ARENA_FULL, __ATOMIC_RELAXED);
    return 0;
}

/* Copies a string (or words that end with an empty one, as "a\0b\0\0") into the
 * arena. Returns its offset, 0 where there is no room. */
static uint32_t put_text(const char *text, size_t bytes)
{
    nmo_lock(&text_lock);
    uint64_t at = nmo_arena_add(NMO_SEC_TEXT, bytes);
    nmo_unlock(&text_lock);
    if (at != 0)
        memcpy(nmo_arena_at(NMO_SEC_TEXT, at), text, bytes);
    return (uint32_t)at;
}

uint32_t nmo_arena_text(const char *text) { return put_text(text, strlen(text) + 1); }

void nmo_arena_note(uint32_t kind, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    uint64_t count = __atomic_load_n(&nmo_arena->section[NMO_SEC_NOTES].count, __ATOMIC_RELAXED);
    if (count >= shape[NMO_SEC_NOTES].cap)
        return;
    for (uint64_t i = 0; i < count; i++) {
        struct nmo_a_note *n = nmo_arena_at(NMO_SEC_NOTES, i);
        if (n->text != 0 && !strcmp(text, nmo_arena_at(NMO_SEC_TEXT, n->text)))
            return;
    }
    uint32_t at = nmo_arena_text(text);
    count = __atomic_fetch_add(&nmo_arena->section[NMO_SEC_NOTES].count, 1, __ATOMIC_RELAXED);
    if (at == 0 || count >= shape[NMO_SEC_NOTES].cap)
        return;
    struct nmo_a_note *n = nmo_arena_at(NMO_SEC_NOTES, count);
    n->kind = kind;
    n->text = at;
}
