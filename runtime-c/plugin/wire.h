/* wire.h: what the runtime says to the emulator plugins, the arena that the
 * user-mode plugin leaves behind, and the log in which the runtime says the
 * same where there is no emulator.
 *
 * Three readers: runtime-c/src (the guest side), runtime-c/plugin (the emulator
 * side) and internal/ingest (reads arena and log; its Go mirror of the arena is
 * arena.go and a test compares the two).
 */
#ifndef NMO_WIRE_H
#define NMO_WIRE_H

#include <stdint.h>

/* ---- user mode: magic system calls ---------------------------------------
 *
 * syscall(NMO_EMU_SYSCALL, op, a, b, c, d, e). The number exists on no Linux;
 * without the plugin every op is a cheap ENOSYS, and with it too: results go
 * through pointers. Guest pointers are host pointers (guest_base is 0). */

#define NMO_EMU_SYSCALL 0x6e6d6f
#define NMO_WIRE_VERSION 4

enum nmo_op {
    /* (version, struct nmo_hello_reply *): once per process image, before all
     * other ops; the reply's version is 0 where the plugin did not answer. */
    NMO_HELLO = 1,
    /* (lo, hi): code in [lo, hi) is the tracker's; its accesses are not counted. */
    NMO_TRACKER = 2,
    /* (): this thread's accesses are not counted until as many NMO_RESUME. */
    NMO_PAUSE = 3,
    NMO_RESUME = 4,
    /* (base, const char *path): an ELF file at load bias base; at start for all
     * modules, and after dlopen. */
    NMO_MODULE = 5,
    /* (rank, cpu, node, const struct nmo_thread *): the calling thread is that.
     * The main thread says so too. Said again, the thread has moved to cpu. */
    NMO_THREAD_START = 6,
    /* (rank): the calling thread ends. */
    NMO_THREAD_END = 7,
    /* (fn | 0, is_master, instance, row): the calling thread is now in the parallel
     * region whose outlined function is fn; 0 is none. The runtime keeps and restores
     * the outer one. Regions of one function that a thread begins without another's
     * between are a row, numbered from 1 (0: the region is inside another); instance
     * counts in it, from 0. */
    NMO_REGION = 8,
    /* (id, nframes, void *const *return_addresses): a new call stack, innermost
     * frame first; ids are from 1 and dense. */
    NMO_SITE = 9,
    /* (addr, bytes, const struct nmo_alloc *): a new object; bytes >= 4096. */
    NMO_ALLOC = 10,
    /* (addr): the object that begins at addr is gone (free, munmap, realloc). */
    NMO_FREE = 11,
    /* (addr, len, mode, nodemask, long *ret): as mbind, with node ordinals;
     * mode is one of linux/mempolicy.h, with the flags below. */
    NMO_BIND = 12,
    /* (struct nmo_move *): as move_pages(0, ...), with node ordinals. */
    NMO_MOVE = 13,
    /* (const char *text): a warning for the profile. */
    NMO_NOTE = 14,
    /* (const char *text): who binds threads other than numaopt, e.g. "OMP_PROC_BIND=close". */
    NMO_PINNED = 15,
    /* (rank, cpu, node, pinned): another thread has moved the thread of rank. */
    NMO_THREAD_MOVED = 16,
    /* (fn, loops): the parallel region fn hands out its work while it runs, where
     * it is in none of its static loops, or with loops in these, too; said at
     * least once, at most now and then. */
    NMO_DYNAMIC = 17,
    /* (site | 0, about, is_master, last | 0): in its region, the calling thread is
     * now in the worksharing loop whose call for its bounds returns to site; 0 is
     * none. about is of the flags below; 0: the thread is back in that loop. No
     * barrier has come since the loop last. The loop ends with the region. */
    NMO_LOOP = 18,
    /* (mode, nodemask): as set_mempolicy, of the calling thread; the program's own. */
    NMO_PREFER = 19,
    /* (addr, pages): in a log only; where these pages of 4096 bytes are. */
    NMO_HOMES = 20,
    /* (parent, time | 0): in a log only; this process is a forked child of that one, or
     * of a child of it that had nothing to tell, since then. */
    NMO_FORKED = 21,
};

/* Where the emulator starts another program, the calling thread's policy, which Linux
 * keeps: MODE:NODEMASK, decimal and hexadecimal. */
#define NMO_POLICY_ENV "NUMAOPT_POLICY"

/* With the mode of NMO_BIND. */
#define NMO_BIND_OWN 0x10000  /* the program's own call, not the plan's */
#define NMO_BIND_MOVE 0x20000 /* pages that are elsewhere move */

#define NMO_LOOP_LIBGOMP 1
#define NMO_LOOP_LIBOMP 2
#define NMO_LOOP_STATIC 4 /* known to be static and unchunked */
#define NMO_LOOP_AFFINE 8 /* the runtime hands out its chunks by node */

/* One slot of the table of small allocations: open addressing, slot of a page
 * is (page * 0x9E3779B97F4A7C15) >> 32 modulo small_slots, then linear probing;
 * page 0 is a free slot. Majority vote of sites: the same site adds its bytes
 * to weight, another takes them off and replaces the site when weight would
 * fall below zero. Written directly by the runtime (atomically enough: a lost
 * vote is harmless). */
struct nmo_small {
    uint64_t page;
    uint32_t site;
    int32_t weight;
};

struct nmo_hello_reply {
    uint32_t version;     /* NMO_WIRE_VERSION of the plugin; 0 before the call */
    uint32_t small_slots; /* a power of two */
    struct nmo_small *small;
};

struct nmo_thread {
    uint64_t start;    /* start routine of a thread that the program started itself, else 0 */
    uint64_t stack_lo; /* bounds of the thread's stack and TLS; 0, 0 is not known */
    uint64_t stack_hi;
    uint32_t pinned;   /* 1 where the program itself chose the CPU */
    uint32_t reserved;
};

enum nmo_alloc_kind { NMO_KIND_HEAP = 1, NMO_KIND_MAPPING = 2 };

struct nmo_alloc {
    uint32_t site;
    uint32_t rank;
    uint32_t ordinal;
    uint8_t kind;     /* enum nmo_alloc_kind */
    uint8_t overlaps; /* an earlier instance of (site, rank) is still live */
    uint16_t reserved;
};

struct nmo_move {
    uint64_t count;
    void **pages;
    const int *nodes; /* NULL: query only */
    int *status;      /* node or -errno; may be NULL where nodes is not */
    int64_t ret;      /* 0 or -errno */
    uint64_t own;     /* the program's own call, not the plan's */
};

/* ---- the log: the same ops in a file, one for each process ------------------
 *
 * PATH.PID: head, table of small allocations, chunks. A chunk is one thread's.
 * An image that the process executes goes on in the same file, with a new
 * NMO_HELLO and an empty table; a forked child begins its own with NMO_FORKED, and
 * what its parent had told by then holds for it: modules, call stacks, objects,
 * regions that hand out their work. The file has holes, and is longer than what is
 * used; who maps it takes room on a disk in memory by looking at them. */

#define NMO_LOG_MAGIC "numaopt-log\n" /* zero padded */
#define NMO_LOG_VERSION 1
#define NMO_LOG_HEAD_BYTES 4096
#define NMO_LOG_CHUNK_BYTES 65536
#define NMO_LOG_SMALL_SLOTS (1 << 18)
#define NMO_LOG_NOWHERE 255 /* NMO_HOMES: no page is there */

struct nmo_log_head {
    char magic[16];
    uint32_t version; /* NMO_LOG_VERSION */
    uint32_t pid;
    uint32_t head_bytes;
    uint32_t chunk_bytes;
    uint64_t used;     /* atomic: file offset of the end of the last chunk handed out */
    uint64_t lost;     /* atomic: records that found no room */
    uint64_t small_at; /* file offset of the table of struct nmo_small; the first chunk follows it */
    uint32_t small_slots;
    uint32_t reserved;
    uint64_t limit; /* used does not grow beyond this */
};

/* Begins a chunk; records follow. */
struct nmo_log_chunk {
    uint32_t tid; /* of the kernel's */
    uint32_t reserved;
};

/* 8-byte aligned, payload after it. args are those of the op; pointers among them mean
 * nothing, the payload is what they point to: NMO_MODULE, NMO_NOTE and NMO_PINNED text
 * with its NUL, NMO_THREAD_START struct nmo_thread, NMO_SITE uint64_t frames, NMO_ALLOC
 * struct nmo_alloc, NMO_HOMES one byte for each page, ordinal of its node or
 * NMO_LOG_NOWHERE. NMO_MOVE is (addr, pages, node): the program moved them there. CPU
 * and node of NMO_THREAD_START are -1 where the runtime does not bind. */
struct nmo_log_record {
    uint32_t bytes; /* with header and payload, a multiple of 8; stored last; 0: nothing follows in this chunk */
    uint16_t op;
    uint16_t reserved;
    uint64_t time; /* ns of CLOCK_MONOTONIC */
    uint64_t args[5];
};

/* ---- system mode: the magic page ------------------------------------------
 *
 * With `mark 1` the runtime maps one page here and stores one byte at the
 * offset of the event. */

#define NMO_MARK_BASE 0x6e6d6f000000ull
#define NMO_MARK_PROGRAM_START 0x00 /* the constructor's end */
#define NMO_MARK_PROGRAM_END 0x08
#define NMO_MARK_REGION_ENTER 0x10 /* an `only` region, by the team's master */
#define NMO_MARK_REGION_LEAVE 0x18
#define NMO_MARK_RUN 0x100 /* + 8 * k: run k begins (the guest's helper) */
#define NMO_MARK_RUN_END 0x200
#define NMO_MARK_RUN_STEP 8

#endif
