/* arena.h: what a process under emulate.so leaves behind.
 *
 * The arena is a sparse memfd that the plugin maps once and writes in place;
 * its descriptor goes to `numaopt profile` at start. Whatever ends the program,
 * what was counted until then is there, and nothing is ever serialised. All
 * integers are little-endian. internal/ingest/arena.go is its Go reader.
 */
#ifndef NMO_ARENA_H
#define NMO_ARENA_H

#include <stdint.h>

#define NMO_ARENA_MAGIC "numaopt-arena\n\0" /* 16 bytes with the final NUL */
#define NMO_ARENA_VERSION 4

/* Header flags. */
#define NMO_ARENA_HELLO 1  /* the runtime spoke: objects and loops are known */
#define NMO_ARENA_EXITED 2 /* exit_group was called; exit_status is valid */
#define NMO_ARENA_FORKED 4 /* a forked child; counts are its own */
#define NMO_ARENA_EXECED 8 /* the process became another program */
#define NMO_ARENA_FULL 16  /* a section ran out of room; later accesses are in lost */
#define NMO_ARENA_ILLEGAL 32 /* reserved: an instruction that the emulator lacks */

enum nmo_section_id {
    NMO_SEC_TEXT,    /* bytes; strings are named by their offset, 0 is "" */
    NMO_SEC_NOTES,   /* struct nmo_a_note */
    NMO_SEC_MODULES, /* struct nmo_a_module */
    NMO_SEC_FUNCS,   /* struct nmo_a_code, function ids; 0 is "not known" */
    NMO_SEC_LOOPS,   /* struct nmo_a_loop; 0 is unused */
    NMO_SEC_STARTS,  /* struct nmo_a_code, start routines; 0 is none */
    NMO_SEC_THREADS, /* struct nmo_a_thread */
    NMO_SEC_SITES,   /* struct nmo_a_site by site id; 0 is unused */
    NMO_SEC_FRAMES,  /* uint64_t return addresses */
    NMO_SEC_OBJECTS, /* struct nmo_a_object; 0 is "none" */
    NMO_SEC_PAGES,   /* struct nmo_a_page; 0 is unused */
    NMO_SEC_BLOCKS,  /* struct nmo_a_block; 0 is unused */
    NMO_SEC_SMALL,   /* struct nmo_small (wire.h); count is the number of slots */
    NMO_SEC_USES,    /* struct nmo_a_use; 0 is unused */
    NMO_SEC_INTERVALS, /* struct nmo_a_interval; 0 is unused */
    NMO_SEC_L1,      /* struct nmo_l1 (cache.h) and sets; the first 8 bytes count accesses */
    NMO_SECTIONS
};

struct nmo_a_section {
    uint64_t offset; /* in the arena, a multiple of 4096 */
    uint64_t stride; /* bytes of an entry */
    uint64_t cap;    /* entries that fit */
    uint64_t count;  /* entries in use, those without meaning at 0 included */
};

struct nmo_a_header {
    char magic[16];
    uint32_t version;
    uint32_t flags;
    uint32_t pid, ppid;
    int32_t exit_status;
    uint32_t period;
    uint32_t cpus, nodes;
    uint32_t command; /* text: uint32 number of words, then NUL-ended words */
    uint32_t program; /* text: path of the executed file */
    uint64_t start_ns; /* CLOCK_REALTIME */
    uint64_t lost;     /* accesses that were seen and not counted, in accesses */
    uint64_t reserved[3];
    struct nmo_a_section section[NMO_SECTIONS];
};

#define NMO_NOTE_WARNING 1
#define NMO_NOTE_PINNED 2

struct nmo_a_note {
    uint32_t kind;
    uint32_t text;
};

/* An ELF file mapped at [lo, hi) with load bias base; path 0: code of no file. */
struct nmo_a_module {
    uint64_t lo, hi, base;
    uint32_t path;
    uint32_t dead; /* unmapped since */
};

/* Code by ELF vaddr; module is -1 where addr is an address of no known module. */
struct nmo_a_code {
    uint64_t vaddr;
    int32_t module;
    uint32_t nosymbol; /* the function is not known; vaddr is the module's first */
};

/* A parallel region, or a worksharing loop in it. */
struct nmo_a_loop {
    uint64_t vaddr; /* of the outlined function */
    uint64_t entries; /* instances, counted by the team's master */
    int32_t module;
    uint32_t dynamic; /* hands out its work while it runs: 1 outside its static loops, 2 in these, too */
    uint64_t site; /* return address of the call for its bounds, ELF vaddr; 0: the region outside such loops */
    int32_t site_module;
    uint32_t about;  /* NMO_LOOP_STATIC and so on (wire.h), 0 is not known */
    uint32_t joined; /* another loop of its region from which no barrier parts it, or the way there; 0 is none */
    uint32_t varies; /* its region's rows (wire.h) are not all as long; of a region only, as the next two */
    uint64_t sweep;  /* instances of a row that has ended; 0: none has */
    uint64_t run;    /* instances of the row that goes on */
};

struct nmo_a_thread {
    uint32_t rank, cpu, node, pinned;
};

struct nmo_a_site {
    uint32_t first, count; /* frames */
};

#define NMO_KIND_STACK 3 /* besides enum nmo_alloc_kind */
#define NMO_OBJECT_FILE 1 /* a mapping of a file */

struct nmo_a_object {
    uint64_t addr, bytes;
    uint32_t site, rank, ordinal;
    uint8_t kind, overlaps;
    uint16_t flags; /* NMO_OBJECT_FILE */
};

/* A page of one object on one home. region is a region key: NMO_KEY_LOOP | loop, or
 * start << 16 | function. */
#define NMO_KEY_LOOP 0x80000000u
#define NMO_PAGE_SERIAL 1 /* first touched outside loops and outside started threads */
#define NMO_PAGE_KERNEL 2 /* first touched by a system call */
#define NMO_PAGE_PLACED 4 /* the program itself chose the home, by a memory policy or a move */

struct nmo_a_page {
    uint64_t page; /* address / 4096 */
    uint64_t pc;   /* vaddr in module of the first touch's instruction, or of the program's call that led to it; 0 is not known */
    uint32_t object;
    int32_t home; /* -1 is not known */
    uint32_t thread, region;
    int32_t module; /* of pc; -1 is none */
    uint32_t flags;
    uint32_t blocks; /* chain of blocks by next */
    uint32_t owner;  /* what it is part of: an object, or one of these */
};

/* Pages of one variable, of one module's other data, or of nothing known, by the first
 * of their records; pages of small allocations by site, as far as it was known then. */
#define NMO_OWNER_PAGE 0x80000000u
#define NMO_OWNER_SITE 0x40000000u

/* The counters of (page, thread, region); a key may have several blocks. What
 * missed the L1 did so in instances of the region first to last of a row. Instance i
 * is itself below 4096, else (e << 11) + (i >> e) with the e that leaves i 12 bits. */
struct nmo_a_block {
    uint64_t l1[2];   /* by operation: load, store */
    uint32_t miss[6]; /* (level - 1) * 2 + operation, for L2, LLC, DRAM */
    uint32_t page, thread, region;
    uint32_t live; /* region while the block may be counted into, else ~0 */
    uint32_t next;
    uint16_t first, last;
};

/* Accesses to DRAM by one instruction; several entries may have one key. */
#define NMO_USE_LOCAL 0
#define NMO_USE_REMOTE 1
#define NMO_USE_UNKNOWN 2 /* no home yet */

struct nmo_a_use {
    uint64_t vaddr; /* of the instruction, for a library's of the program's call into it */
    uint64_t count[3];
    uint32_t owner, region;
    int32_t module; /* of vaddr, -1 is none */
    uint32_t op;
};

/* What a thread did in a region during one part of the run. Part i is from i << shift on
 * in the thread's time (dram.c); several entries may have one key. */
#define NMO_PARTS 2048

struct nmo_a_interval {
    uint32_t part, shift, thread, region;
    uint64_t work;    /* accesses of any level */
    uint64_t count[]; /* DRAM accesses by home, the last is of pages without */
};

#endif
