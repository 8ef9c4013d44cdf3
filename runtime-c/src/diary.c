/* diary.c: what the runtime has to tell. Under emulation the plugin hears it; where the
 * run file names a log, it is written there (plugin/wire.h), in a file of the process's
 * own that is mapped once; else nobody listens.
 *
 * A record costs a look at the clock and a few stores. Each thread writes in a chunk of
 * its own. Space is taken before it is written, so that a signal handler that
 * interrupts has a record of its own, after ours. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "../plugin/wire.h"
#include "nmo.h"
#include "sys.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
    SMALL_AT = NMO_LOG_HEAD_BYTES,
    FIRST = SMALL_AT + NMO_LOG_SMALL_SLOTS * (int)sizeof(struct nmo_small),
    CHUNK = NMO_LOG_CHUNK_BYTES,
    LIMIT = FIRST + (1 << 30),
    MAX_TEXT = 4096
};

bool nmo_diary;

/* The log of this process: in a forked child the page is zero, however that was forked,
 * because the file is the parent's. */
static struct book {
    char *base; /* NULL: not open yet */
    bool over;  /* no more chunks */
} *book;
static char *mapped; /* book->base; a child's log takes the place of its parent's */
static uint64_t mapped_bytes;
static uint32_t mapped_by; /* process whose log it is */
static uint64_t forked;    /* when a child began to live on with that log */
static uint32_t forked_from;
static bool made[FIRST / 4096]; /* pages of the table for which there is room */

/* File offset of the thread's next record, in or at the end of its chunk; 0: it has none. */
static __thread uint64_t next __attribute__((tls_model("initial-exec")));

static struct nmo_log_head *head(void) {
    return (struct nmo_log_head *)book->base;
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- the file ---- */

static long open_file(int flags) {
    NMO_TEXT(path, 4200);
    nmo_text_add(&path, nmo_run.log);
    nmo_text_add(&path, ".");
    nmo_text_number(&path, (uint64_t)nmo_sys_pid());
    return nmo_sys_call(SYS_openat, AT_FDCWD, (long)nmo_text_end(&path), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
}

/* Largest size that a file may have; to ask for more would kill the program. */
static uint64_t largest_file(void) {
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    nmo_sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&most, 0, 0);
    return most.rlim_cur;
}

/* Linux before 5.14 cannot make pages through the mapping, and not every file system can
 * allocate. */
static long reserve_in_file(uint64_t at, uint64_t bytes) {
    static const char zeros[4096];
    if (at + bytes > largest_file())
        return -EFBIG;
    long fd = open_file(0);
    if (fd < 0)
        return fd;
    long err = nmo_sys_call(SYS_fallocate, fd, 0, (long)at, (long)bytes, 0, 0);
    if (err == -EOPNOTSUPP)
        for (uint64_t end = at + bytes; at < end && err != -ENOSPC; at += sizeof zeros)
            err = nmo_sys_call(SYS_pwrite64, fd, (long)zeros, sizeof zeros, (long)at, 0, 0) == sizeof zeros ? 0 : -ENOSPC;
    nmo_sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return err;
}

/* Makes room in the file for what was never written: a full disk would kill the program
 * at the first store. */
static long reserve(uint64_t at, uint64_t bytes) {
    long err = nmo_sys_call(SYS_madvise, (long)(mapped + at), (long)bytes, MADV_POPULATE_WRITE, 0, 0, 0);
    return err == -EINVAL ? reserve_in_file(at, bytes) : err == -EFAULT ? -ENOSPC : err;
}

static bool is_log(const struct nmo_log_head *h, uint64_t bytes) {
    return nmo_mem_equal(h->magic, NMO_LOG_MAGIC) && h->version == NMO_LOG_VERSION && h->chunk_bytes == CHUNK &&
           h->small_slots == NMO_LOG_SMALL_SLOTS && h->limit <= bytes;
}

static void write_head(struct nmo_log_head *h) {
    h->version = NMO_LOG_VERSION;
    h->pid = (uint32_t)nmo_sys_pid();
    h->head_bytes = NMO_LOG_HEAD_BYTES;
    h->chunk_bytes = CHUNK;
    h->used = FIRST;
    h->small_at = SMALL_AT;
    h->small_slots = NMO_LOG_SMALL_SLOTS;
    h->limit = mapped_bytes;
    nmo_mem_copy(h->magic, NMO_LOG_MAGIC, sizeof NMO_LOG_MAGIC);
}

/* The table is the image's: what its predecessor had there goes, and holes stay holes.
 * By read, for to look at a hole through a mapping takes room on a disk in memory. */
static long clear_small(long fd) {
    struct nmo_small page[4096 / sizeof(struct nmo_small)];
    for (long at = SMALL_AT; at < FIRST; at += sizeof page) {
        if (nmo_sys_call(SYS_pread64, fd, (long)page, sizeof page, at, 0, 0) != sizeof page)
            return -EIO;
        for (size_t i = 0; i < sizeof page / sizeof *page; i++)
            if (page[i].page)
                ((struct nmo_small *)(mapped + at))[i] = (struct nmo_small){0};
    }
    return 0;
}

static long map(long fd, uint64_t bytes) {
    return nmo_sys_call(SYS_mmap, (long)mapped, (long)bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE | (mapped ? MAP_FIXED : 0), fd, 0);
}

static long map_file(long fd) {
    struct stat st;
    long err = nmo_sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
    bool fresh = !err && !st.st_size;
    uint64_t most = mapped ? mapped_bytes : LIMIT, bytes = fresh ? largest_file() : (uint64_t)st.st_size;
    bytes = bytes < most ? bytes & ~(uint64_t)(4096 - 1) : most;
    if (!err && bytes < FIRST + CHUNK)
        err = -EFBIG;
    if (err < 0)
        return err;
    long at = map(fd, bytes);
    while (at == -ENOMEM && fresh && bytes / 2 > FIRST + CHUNK) /* RLIMIT_AS */
        at = map(fd, bytes = bytes / 2 & ~(uint64_t)(4096 - 1));
    if (at < 0 && at > -4096)
        return at;
    mapped = (char *)at;
    mapped_bytes = bytes;
    nmo_sys_call(SYS_madvise, at, (long)bytes, MADV_RANDOM, 0, 0, 0); /* to read ahead in a hole takes milliseconds */
    err = fresh ? nmo_sys_call(SYS_ftruncate, fd, (long)bytes, 0, 0, 0, 0) : 0;
    if (err < 0)
        return err;
    if (!fresh && !is_log((struct nmo_log_head *)mapped, bytes))
        return -EEXIST;
    if (!fresh)
        return clear_small(fd);
    err = reserve(0, NMO_LOG_HEAD_BYTES);
    if (!err)
        write_head((struct nmo_log_head *)mapped);
    return err;
}

static bool open_log(void) {
    next = 0;
    nmo_mem_zero(made, sizeof made);
    long fd = open_file(O_CREAT), err = fd < 0 ? fd : map_file(fd);
    if (fd >= 0)
        nmo_sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    if (err < 0) {
        book->over = true;
        nmo_warn("the log cannot be written: samples of this process get no objects, threads and loops", nmo_errno_name(-err));
        return false;
    }
    book->base = mapped;
    mapped_by = (uint32_t)nmo_sys_pid();
    return true;
}

/* ---- records ---- */

static bool end_log(long err) {
    if (!__atomic_exchange_n(&book->over, true, __ATOMIC_RELAXED))
        nmo_warn("the log ends here: what the program does from now on is not in it", nmo_errno_name(-err));
    return false;
}

/* Begins a chunk in place of the one that ends at last. */
static bool turn(uint64_t last) {
    uint64_t at = __atomic_load_n(&head()->used, __ATOMIC_RELAXED);
    do {
        if (book->over)
            return false;
        if (at + CHUNK > head()->limit)
            return end_log(-EFBIG);
    } while (!__atomic_compare_exchange_n(&head()->used, &at, at + CHUNK, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    long err = reserve(at, CHUNK);
    if (err < 0)
        return end_log(err);
    ((struct nmo_log_chunk *)(book->base + at))->tid = (uint32_t)nmo_sys_tid();
    /* A signal handler may have begun one meanwhile: then that one it is. */
    __atomic_compare_exchange_n(&next, &last, at + sizeof(struct nmo_log_chunk), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return true;
}

/* Room for a record of bytes, NULL where there is none. The clock is read before the
 * room is taken, and again where a handler was faster: times rise along a chunk. */
static struct nmo_log_record *take(size_t bytes, uint64_t *time) {
    for (;;) {
        uint64_t at = __atomic_load_n(&next, __ATOMIC_RELAXED);
        uint64_t end = FIRST + ((at - 1 - FIRST) / CHUNK + 1) * CHUNK;
        *time = now();
        if (NMO_UNLIKELY(!at || at + bytes > end)) {
            if (!turn(at))
                return NULL;
        } else if (__atomic_compare_exchange_n(&next, &at, at + bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            return (struct nmo_log_record *)(book->base + at);
        }
    }
}

struct payload {
    const void *at;
    size_t bytes;
};

static struct payload text(uintptr_t at) {
    size_t n = nmo_mem_length((const char *)at) + 1;
    return (struct payload){(const void *)at, n < MAX_TEXT ? n : MAX_TEXT};
}

static struct payload payload_of(int op, const uintptr_t a[5]) {
    switch (op) {
    case NMO_MODULE: return text(a[1]);
    case NMO_THREAD_START: return (struct payload){(const void *)a[3], sizeof(struct nmo_thread)};
    case NMO_SITE: return (struct payload){(const void *)a[2], a[1] * sizeof(uint64_t)};
    case NMO_ALLOC: return (struct payload){(const void *)a[2], sizeof(struct nmo_alloc)};
    case NMO_HOMES: return (struct payload){(const void *)a[2], a[1]};
    case NMO_NOTE:
    case NMO_PINNED: return text(a[0]);
    default: return (struct payload){NULL, 0};
    }
}

static void add(int op, const uintptr_t a[5]) {
    struct payload payload = payload_of(op, a);
    uint64_t time;
    uint32_t bytes = (uint32_t)(sizeof(struct nmo_log_record) + ((payload.bytes + 7) & ~(size_t)7));
    struct nmo_log_record *r = take(bytes, &time);
    if (!r) {
        __atomic_fetch_add(&head()->lost, 1, __ATOMIC_RELAXED);
        return;
    }
    r->op = (uint16_t)op;
    r->time = time;
    for (int i = 0; i < 5; i++)
        r->args[i] = a[i];
    nmo_mem_copy(r + 1, payload.at, payload.bytes);
    __atomic_store_n(&r->bytes, bytes, __ATOMIC_RELEASE);
}

/* In a forked child, the first time that it has something to say: many become another
 * program before, or just end. */
static bool begin_child(void) {
    uint32_t parent = mapped_by;
    uint64_t when = forked_from == parent ? forked : 0;
    if (!open_log())
        return false;
    add(NMO_FORKED, (uintptr_t[5]){parent, when});
    nmo_thread_again();
    return true;
}

/* Answers for the plugin. */
static void hello(struct nmo_hello_reply *reply) {
    book = nmo_sys_map(4096);
    if (!book || !open_log())
        return;
    nmo_sys_call(SYS_madvise, (long)book, 4096, MADV_WIPEONFORK, 0, 0, 0); /* else nmo_diary_child alone does it */
    nmo_diary = true;
    *reply = (struct nmo_hello_reply){NMO_WIRE_VERSION, NMO_LOG_SMALL_SLOTS, (struct nmo_small *)(mapped + SMALL_AT)};
}

/* Whether there is a log of this process. */
static bool is_open(void) {
    return book->base || (!book->over && begin_child());
}

void nmo_diary_child(void) {
    if (!nmo_diary)
        return;
    *book = (struct book){0};
    if (forked_from != mapped_by) /* else its parent has no log either */
        forked_from = mapped_by, forked = now();
}

void nmo_diary_begin(void) {
    if (nmo_diary)
        is_open();
}

bool nmo_diary_room(const struct nmo_small *slot) {
    if (!is_open())
        return false;
    uint64_t at = (uint64_t)((const char *)slot - mapped);
    bool *has = &made[at / 4096];
    if (!__atomic_load_n(has, __ATOMIC_RELAXED))
        __atomic_store_n(has, reserve(at & ~(uint64_t)4095, 4096) >= 0, __ATOMIC_RELAXED);
    return __atomic_load_n(has, __ATOMIC_RELAXED);
}

void nmo_tell(int op, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e) {
    if (nmo_run.emulated) {
        nmo_emu(op, a, b, c, d, e);
        return;
    }
    if (op == NMO_HELLO && nmo_run.log)
        hello((struct nmo_hello_reply *)b);
    if (nmo_diary && is_open())
        add(op, (uintptr_t[5]){a, b, c, d, e});
}
