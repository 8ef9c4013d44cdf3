/* nmo.h: types and all cross-file functions of the runtime, grouped under the
 * file that defines them.
 *
 * The manners of a guest in somebody else's process:
 *  - memory comes from static tables and from raw mmap, never from malloc;
 *  - the program is called, and the stack unwound, with no lock of ours held;
 *  - messages go through log.c; stdio stays the program's;
 *  - each hook leaves errno as the real function set it;
 *  - any failure switches off what failed and leaves the program as it would
 *    have been: abort and exit are the program's words, not ours;
 *  - no libc function is called on a hot path, so that under emulation no
 *    access of ours is counted as one of the program's.
 */
#ifndef NMO_H
#define NMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "affine.h"

/* Everything here is the library's own: reached directly, not through a table. */
#pragma GCC visibility push(hidden)

#define NMO_EXPORT __attribute__((visibility("default")))
#define NMO_LIKELY(x) __builtin_expect(!!(x), 1)
#define NMO_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define NMO_MAX_CPUS 4096  /* CPU numbers that a mask can hold */
#define NMO_MAX_NODES 64   /* node ordinals; a mask of them is one word */
#define NMO_MAX_RANKS 4096 /* threads alive at once that have a rank of their own */
#define NMO_MAX_FRAMES 64  /* return addresses of one call stack */
#define NMO_SMALL 4096     /* allocations below this are no objects of their own */

/* ---- states ---------------------------------------------------------------- */

/* boot: the loader still works, every hook passes through. ready: the run file
 * is in force. off: inert for good. */
enum nmo_state { NMO_BOOT, NMO_READY, NMO_OFF };
extern enum nmo_state nmo_state;

/* ---- mem.h: what libc would do ---------------------------------------------- */

static inline void nmo_mem_copy(void *to, const void *from, size_t bytes) {
    char *t = to;
    const char *f = from;
    while (bytes--)
        *t++ = *f++;
}

static inline void nmo_mem_zero(void *to, size_t bytes) {
    char *t = to;
    while (bytes--)
        *t++ = 0;
}

static inline size_t nmo_mem_length(const char *s) {
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}

static inline bool nmo_mem_equal(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* ---- lock.h: a lock that fork can reset -------------------------------------- */

typedef struct {
    int held;
} nmo_lock;

void nmo_lock_take(nmo_lock *lock);
static inline void nmo_lock_release(nmo_lock *lock) {
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

/* ---- log.c ------------------------------------------------------------------- */

/* Text under construction; what does not fit is cut. */
struct nmo_text {
    size_t used, size;
    char *to;
};
#define NMO_TEXT(name, bytes)                                                                      \
    char name##_space[bytes];                                                                      \
    struct nmo_text name = {0, sizeof name##_space, name##_space}

void nmo_text_add(struct nmo_text *text, const char *s);
void nmo_text_number(struct nmo_text *text, uint64_t n);
void nmo_text_hex(struct nmo_text *text, uint64_t n);
void nmo_text_json(struct nmo_text *text, const char *s); /* quoted and escaped */
const char *nmo_text_end(struct nmo_text *text);          /* NUL-terminated */
const char *nmo_errno_name(long err); /* "EPERM"; positive errno */

/* Keeps a warning for the summary, and in mode track tells it. Each
 * kind (a string constant) is kept once; later ones are counted. */
void nmo_warn(const char *kind, const char *detail);
/* Remembers what stderr is. */
void nmo_log_init(void);
/* One line on stderr at once; nothing where stderr is another file by now. */
void nmo_say(const char *line);
void nmo_warn_child(void); /* after fork: what the parent said is the parent's */
int nmo_warn_count(void);
const char *nmo_warn_text(int i);
unsigned nmo_warn_times(int i);

/* ---- run.c: the run file to static tables -------------------------------------- */

enum nmo_mode { NMO_MODE_TRACK, NMO_MODE_APPLY, NMO_MODE_BIND };
enum nmo_kind { NMO_HEAP, NMO_MAPPING, NMO_GLOBAL };
enum nmo_policy { NMO_POLICY_BIND, NMO_POLICY_INTERLEAVE, NMO_POLICY_CYCLIC, NMO_POLICY_XWISE, NMO_POLICY_PAGES };

struct nmo_run_cpu {
    int id, node;
};

/* Consecutive pages on one node; node -1 is pages left alone. */
struct nmo_runs {
    int32_t node;
    uint32_t count;
};

struct nmo_frame {
    uint16_t k, module;
    uint64_t lo, hi; /* ELF virtual addresses */
};

struct nmo_module {
    const char *build_id; /* lower-case hex, "" is none */
    const char *path;     /* "-" or /proc/self/exe: the program itself */
    bool loaded;
    uintptr_t base; /* load bias */
};

struct nmo_object {
    uint32_t id;
    enum nmo_kind kind;
    int rank; /* -1: every allocation of the stack, each by itself */
    uint64_t first, count;
    uint64_t min_bytes, max_bytes;
    enum nmo_policy policy;
    uint64_t arg; /* node, mask or block in bytes */
    const char *name;
    struct nmo_frame *frames; /* in the order of the file */
    unsigned nframes, depth;  /* depth: frames that must match, highest K + 1 */
    int module;               /* globals */
    uint64_t vaddr, bytes;
    struct nmo_runs *map, *touched;
    unsigned nmap, ntouched;
    uint64_t map_pages, touched_pages; /* sums of the counts */
    struct nmo_runs *other; /* its map where block-exclusive loops turn out to run as OpenMP made them */
    unsigned nother;        /* 0: the same place */
    uint64_t other_pages;
    bool otherwise; /* other is in force */
    /* What was done, see stats.c; atomic counters. */
    uint64_t ordinal; /* allocations of this stack by this rank so far */
    uint64_t instances, pages, touched_seen, on_plan, moved, recycled;
    uint64_t touched_before, on_plan_before; /* before the end's read-back */
    unsigned placed; /* globals: nmo_generation of the process that placed it, 0: none did */
    uint32_t ranges; /* globals: as of nmo_place_block */
};

struct nmo_only {
    uint64_t offset;
    const char *path;
    uintptr_t address; /* 0: not loaded */
};

enum nmo_schedule { NMO_SCHEDULE_INVERSE, NMO_SCHEDULE_NODES, NMO_SCHEDULE_BLOCKS, NMO_SCHEDULE_AFFINE };

/* A worksharing loop whose chunks are handed out in another order, see schedule.c. */
struct nmo_loop {
    uint32_t id;
    bool kmp;        /* libomp's, else libgomp's */
    int module;
    uint64_t offset; /* ELF virtual address that the call for its bounds returns to */
    enum nmo_schedule schedule;
    int nnodes;      /* for NODES and BLOCKS */
    uint8_t nodes[NMO_MAX_NODES];
    uint64_t sweep;  /* BLOCKS: how often its region runs in a row; else 0 */
    unsigned step;   /* BLOCKS: from 1 to nodes - 1 */
    const char *name;
    uintptr_t address;       /* 0: not loaded, or not to be touched */
    unsigned since;          /* teams that began with this nmo_schedule_epoch or a later one */
    unsigned until;          /* BLOCKS: teams that began with an earlier nmo_schedule_ended */
    uint64_t row, ran;       /* BLOCKS: number of the last row of its region, 0 is none; and instances in it */
    uint16_t *chunk;         /* of each thread of the plan's team, phase by phase; NULL: as OpenMP made it */
    struct nmo_loop *next;   /* of the same bucket */
    uint64_t permuted, left; /* instances, counted at the team's thread 0 */
};

struct nmo_run {
    enum nmo_mode mode;
    bool emulated, mark;
    uint64_t page_ranges;
    uint64_t page_size; /* units that get one node, by address; 0 and 4096 are pages */
    struct nmo_run_cpu *cpus;
    int ncpus;
    int nnodes;
    int os_node[NMO_MAX_NODES]; /* the same number twice where a node without memory goes to another */
    int behind[NMO_MAX_NODES];  /* 0, or how many ordinals later than the first with this os_node */
    const char *pinned;  /* NULL: numaopt binds */
    bool affine;         /* all loops that can be are affine, named or not */
    const char *summary; /* NULL: text on stderr */
    const char *log;     /* NULL: none; see diary.c */
    struct nmo_only *only;
    int nonly;
    struct nmo_module *modules;
    int nmodules;
    struct nmo_module *read; /* files whose code the plan's loops were judged with; none: they were not judged */
    int nread;
    const char **plain; /* "libm" of libm.so.6: libraries that need not be read */
    int nplain;
    struct nmo_object *objects;
    int nobjects;
    struct nmo_loop *loops;
    int nloops;
};
extern struct nmo_run nmo_run;

/* Parses text (which it changes and which must stay) into run. space is where
 * the tables go, of nmo_run_space(text) bytes. Returns 0 or the number of the
 * first bad line, with the reason in *why. */
size_t nmo_run_space(const char *text, size_t bytes);
int nmo_run_parse(struct nmo_run *run, char *text, size_t bytes, void *space, const char **why);

/* ---- module.c: ELF files in the process ------------------------------------------ */

/* A loaded ELF file. */
struct nmo_loaded {
    uintptr_t base, lo, hi; /* bias; code and data are in [lo, hi) */
    uintptr_t relro_lo, relro_hi;
    struct nmo_segment {
        uintptr_t lo, file_hi, hi; /* [lo, file_hi) is from the file, the rest is .bss */
    } writable[4];
    int nwritable;
    const void *eh_frame_hdr; /* or NULL */
    const char *path;         /* as the loader knows it; "" is the program */
};

/* Looks at what is loaded now; true if that changed. Tells the plugin of new
 * files, resolves modules, only-regions and globals of the run. Takes the
 * loader's lock. */
bool nmo_module_scan(void);
/* Around fork: no thread of ours is in the loader, or halfway in a table. */
void nmo_module_before_fork(void);
void nmo_module_after_fork(void);
void nmo_module_child(void); /* only the forking thread is left: nobody is loading */
/* Files may have been loaded since: look again now, and soon. */
extern int nmo_module_pending;
extern bool nmo_module_watched; /* files may have come unseen, of which permuted loops must know */
void nmo_module_expect(void); /* the calling thread is about to load files */
void nmo_module_refresh(void);
/* Calls with each loaded file but the runtime. */
void nmo_module_each(void (*call)(const struct nmo_loaded *in));
/* The loaded file that contains address, from the last scan; NULL is none. */
const struct nmo_loaded *nmo_module_of(uintptr_t address);
extern bool nmo_module_other; /* a file of a name in the plan was loaded, in another build */
extern uintptr_t nmo_text_lo, nmo_text_hi; /* the runtime's own code */

/* ---- cfi.c, stack.c: call stacks ------------------------------------------------- */

/* Where a hook was called from: what unwinding starts with. */
struct nmo_caller {
    uintptr_t ra, cfa, bp; /* return address, stack pointer after return, frame pointer */
};
/* pre: in a function that the program called, compiled with a frame pointer. */
#define NMO_CALLER()                                                                               \
    ((struct nmo_caller){((uintptr_t *)__builtin_frame_address(0))[1],                             \
                         (uintptr_t)__builtin_frame_address(0) + 16,                               \
                         ((uintptr_t *)__builtin_frame_address(0))[0]})

/* A call stack that allocated: return addresses outside the runtime, innermost
 * first, each kept where it occurs first (so recursion folds). */
struct nmo_site {
    uint32_t id; /* from 1 */
    uint32_t nframes;
    uint64_t hash;
    uint32_t told;      /* generation of modules for which match is valid, + 1 */
    uint32_t nmatch;    /* objects that this stack can be, see object.c */
    uint32_t match[6];  /* indices in nmo_run.objects */
    uintptr_t frames[]; /* nframes */
};
/* The site of a caller, NULL where tables are full. */
struct nmo_site *nmo_stack_site(const struct nmo_caller *caller);

void nmo_stack_before_fork(void);
void nmo_stack_after_fork(void);

/* ---- object.c: addresses and stacks to objects of the plan -------------------------- */

/* Prepares the filters below. */
void nmo_object_init(void);
/* Files are being loaded: every size is looked at until there were so many
 * looks (nmo_module_refresh). */
void nmo_object_all(int looks);
void nmo_object_before_fork(void);
void nmo_object_after_fork(void);
/* Smallest size in bytes for which a hook must look at all. */
extern size_t nmo_object_min;
/* True where an allocation called from ra can be an object of the plan. */
bool nmo_object_possible(uintptr_t ra, size_t bytes, enum nmo_kind kind);
/* The object to which the next allocation of site by rank belongs, counting
 * it; *ordinal is its number in the object's array. NULL is none. */
struct nmo_object *nmo_object_next(struct nmo_site *site, int rank, size_t bytes, enum nmo_kind kind, uint64_t *ordinal);

/* ---- live.c: blocks that are objects, by address ------------------------------------- */

struct nmo_live {
    uintptr_t addr;
    uint64_t bytes;
    uintptr_t whole_addr; /* of the whole, parts of which may have been unmapped; 0: this is it */
    uint64_t whole_bytes;
    uint32_t object; /* index + 1, 0 is none: tracked only */
    uint32_t slot;   /* of (site, rank), see track.c; 0 is none */
    uint32_t ranges; /* of nmo_place_block */
    unsigned generation; /* nmo_generation of the process that placed it */
    bool other;      /* it was placed when its object's other map was in force */
    uint64_t offset; /* ordinal in an array of instances */
};
int nmo_live_init(void);
bool nmo_live_add(const struct nmo_live *live);
/* Takes the block that begins at addr out; false if there is none. */
bool nmo_live_take(uintptr_t addr, struct nmo_live *out);
/* True if the block at addr may be known: a quick look, no false negatives. */
bool nmo_live_known(uintptr_t addr);
/* Size of the block that begins at addr, 0 if there is none. pre: the caller owns it. */
uint64_t nmo_live_bytes(uintptr_t addr);
/* Calls with a copy of each block that this process made. Other threads go on: who takes the block of the
 * call waits for its end, and what is added meanwhile may be left out. call must
 * neither add nor take blocks, nor wait for another thread. What two threads walk at
 * once one of them leaves out. */
void nmo_live_each(void (*call)(const struct nmo_live *live));
void nmo_live_child(void); /* after fork: nobody walks. pre: nmo_generation is the child's */
extern uint64_t nmo_live_count;

/* ---- extent.c: mappings that are objects, by range ------------------------------------ */

void nmo_extent_add(uintptr_t addr, uint64_t bytes);
/* Takes one that overlaps [lo, hi) out; 0 is none. */
uintptr_t nmo_extent_take(uintptr_t lo, uintptr_t hi);
void nmo_extent_drop(uintptr_t addr); /* the one that begins at addr */
extern int nmo_extents;               /* slots that were ever in use */

/* ---- place.c: from policy to runs ---------------------------------------------------- */

/* Places the instance of object at addr; offset is its number in its array;
 * writable: its pages may be stored to.
 * Returns the ranges of memory policy that it added. Never fails: what the
 * kernel refuses stays with first touch and is said. */
uint32_t nmo_place_block(struct nmo_object *object, uintptr_t addr, size_t bytes, uint64_t offset, bool writable);
/* Reads back where the pages are, adds to the object's counters; with reset
 * also returns the memory to the default policy. */
void nmo_place_end(struct nmo_object *object, uintptr_t addr, size_t bytes, uint64_t offset, uint32_t ranges, bool reset);
/* The same for the part [lo, lo + part) of an instance. What was inherited by
 * fork is the parent's to read back and to report. */
void nmo_place_end_part(struct nmo_object *object, const struct nmo_live *live, uintptr_t lo, size_t part, bool reset);
void nmo_place_global(struct nmo_object *object, const struct nmo_loaded *in);
/* Which map is in force for the object; and a block, which the caller owns, was placed
 * and added: anew if another map has come into force since live->other was asked. */
bool nmo_place_other(const struct nmo_object *object);
void nmo_place_added(const struct nmo_live *live);
/* Moves the objects that have another place for loops as OpenMP made them to it, once;
 * true if there are any. */
bool nmo_place_otherwise(void);
extern uint64_t nmo_place_ranges;

/* ---- thread.c: ranks, CPUs and regions of threads -------------------------------------- */

/* The parallel region that a thread is in. What its team decides together is
 * fixed by the master before the team starts: epoch, nested, instance. */
struct nmo_region {
    uintptr_t fn; /* outlined function, 0: none */
    bool gomp;    /* libgomp's, else libomp's */
    bool nested;  /* a team inside a team of several threads */
    unsigned epoch; /* nmo_schedule_epoch */
    unsigned ended; /* nmo_schedule_ended */
    /* Regions that one thread begins, outside of others: one function's without
     * another's between are a row. */
    uint64_t row;      /* its number, from 1; 0: a region inside another */
    uint64_t instance; /* number of the region in its row, from 0 */
    /* The thread's own. */
    bool master;
    uintptr_t site;     /* of the worksharing loop it is in, 0: none; mode track only, as the rest */
    uintptr_t last;     /* of the last loop, where no barrier came since */
    uintptr_t asked;    /* libgomp: who asked for the number of threads, and not yet for the thread's */
    uintptr_t answered; /* libgomp: who asked for the thread's number only */
    bool dealt;         /* libgomp: in a loop that hands out its work while it runs, or in no static one since */
    struct nmo_affine_at affine;
};

struct nmo_self {
    int rank1;        /* rank + 1, 0: not known yet */
    int in_alloc;     /* depth of real allocation calls, so that their mmaps are not the program's */
    bool quiet;       /* inside the runtime: hooks pass through */
    struct nmo_region region;
    struct nmo_row {
        uintptr_t fn;
        uint64_t number, instances;
    } row; /* of regions that it began */
};
extern __thread struct nmo_self nmo_self __attribute__((tls_model("initial-exec")));

struct nmo_rank {
    int used;
    int tid;
    int cpu;     /* line of nmo_run.cpus */
    bool pinned; /* by the program */
    bool view_set;
    const char *pinned_by; /* what the program called; NULL once it was reported */
    int policy;            /* its own, by set_mempolicy or inherited, with flags; 0: none */
    uint64_t policy_nodes; /* ordinals */
    uintptr_t pthread;
    uint64_t view[NMO_MAX_CPUS / 64]; /* the affinity that the program sees */
};
extern struct nmo_rank nmo_ranks[NMO_MAX_RANKS];

/* own.c */
long nmo_own_call(long number, const long a[6]); /* a system call about memory policy */
void nmo_own_begin(int rank);                    /* the calling thread has the policy of its rank */
/* The policy that the process has had since before it was executed, as numactl sets it;
 * looked up before anything is placed. Threads without a creator that is known have it. */
extern int nmo_own_first;
extern uint64_t nmo_own_first_nodes;
void nmo_own_init(void);
bool nmo_own_leaves(int rank); /* the thread leaves the plan its way: it has no policy of its own; -1: no rank yet */
/* The calling thread's own policy keeps the object: it is said, and counted as met. */
bool nmo_own_keeps(struct nmo_object *object);

void nmo_thread_init(void);
int nmo_thread_rank(void); /* of the caller; registers an unknown thread */
/* For pthread_create: claims a rank for a thread whose creator is the caller. */
int nmo_thread_claim(void);
void nmo_thread_unclaim(int rank);
void nmo_thread_begin(int rank, uintptr_t start);
void nmo_thread_end(void);
void nmo_thread_before_fork(void);
void nmo_thread_after_fork(void);
void nmo_thread_child(void); /* after fork, in the child */
void nmo_thread_again(void); /* tells of the calling thread, which was forked, in a log that begins */
/* The caller is in region now, or is back in an outer one. */
void nmo_thread_enter(const struct nmo_region *region);
void nmo_thread_leave(const struct nmo_region *outer);
int nmo_thread_threads(void); /* most ranks in use at once */
/* Binds the calling thread, or the one of this kernel id, to its rank's CPU
 * unless somebody else binds. */
void nmo_thread_bind(int rank, int tid);
/* The calling thread has the mask that the program sees, for a program that it
 * starts; and is bound again. */
void nmo_thread_loosen(void);
void nmo_thread_tighten(void);
/* The program moved the thread of rank to another CPU, or pinned it. */
void nmo_thread_moved(int rank);

/* ---- process.c ------------------------------------------------------------------------ */

/* False where another process of this program is bound already. */
bool nmo_process_first(const char *run_file);

/* ---- view.c: what the program sees of CPUs ----------------------------------------------- */

void nmo_view_init(void);
extern size_t nmo_view_bytes; /* of a kernel mask */
extern uint64_t nmo_view_all[NMO_MAX_CPUS / 64];
/* As the system calls: bytes of mask or -errno; tid 0 is the caller. */
long nmo_view_get(int tid, size_t bytes, void *mask);
long nmo_view_set(int tid, size_t bytes, const void *mask, const char *by);
/* Line of the CPU on which a thread of this mask runs: its own where the mask
 * leaves it, else the mask's first; -1 where the mask has none of the run's. */
int nmo_view_line(const uint64_t *mask, int rank);
/* The mask that the program put into thread attributes, NULL is none; and a
 * thread of that mask is about to be created. */
const uint64_t *nmo_view_attr(const void *attr);
void nmo_view_attr_child(void);
void nmo_view_born(int rank, const uint64_t *mask);
/* Reports a binding by the program that has lasted until now: runtimes bind for
 * a moment to look at the machine. */
void nmo_view_report(int rank);
int nmo_view_cpu(int *node); /* current CPU, -1: ask the system */
int nmo_view_count(void);    /* CPUs online, -1: ask the system */

/* ---- diary.c: who hears what the runtime tells ---------------------------------------------- */

extern bool nmo_diary; /* a log is written */
/* An op of plugin/wire.h, to the plugin or into the log. */
void nmo_tell(int op, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e);
void nmo_diary_child(void); /* after fork: the log is the parent's */
void nmo_diary_begin(void); /* before a forked child has a second thread: only the first opens its log */
struct nmo_small;
bool nmo_diary_room(const struct nmo_small *slot); /* may the slot of the log's table be looked at and written? */
static inline bool nmo_heard(void) { /* does anybody listen? */
    return nmo_run.emulated || nmo_diary;
}

/* ---- homes.c: where pages are, for the log --------------------------------------------------- */

void nmo_homes_last(void);                          /* of all objects and globals, as the program ends */
void nmo_homes_gone(uintptr_t addr, size_t bytes);  /* an object, or part of one, is about to go */
void nmo_homes_between(void);                       /* all of them, if it is time; by rank 0 only */

/* ---- track.c: allocations, for whoever listens ---------------------------------------------- */

void nmo_track_init(void); /* before all other events */
void nmo_track_range(void); /* when nmo_text_lo is known */
void nmo_track_alloc(struct nmo_site *site, uintptr_t addr, size_t bytes, enum nmo_kind kind, struct nmo_live *live);
void nmo_track_free(const struct nmo_live *live);
extern bool nmo_track;

/* ---- hook_dynamic.c: regions that hand out their work while they run ------------------------- */

/* fn, 0 is none, is such a region, with all of its loops or outside of its static
 * loops; mode track tells the plugin. */
void nmo_dynamic(uintptr_t fn, bool loops);
bool nmo_dynamic_runtime(void);  /* is schedule(runtime) such a schedule? false outside mode track */
/* The caller begins a loop that hands out its work, or with schedule(runtime) may do
 * so; kmp: of this schedule of libomp's. */
void nmo_dynamic_here(bool runtime);
void nmo_dynamic_kmp(int schedule);
void nmo_affine_other(int schedule); /* hook_affine.c: a loop begins that is not dealt out there */

/* ---- schedule.c: worksharing loops of the run file ------------------------------------------ */

void nmo_schedule_init(void);
/* Module of the run was loaded, or is gone. */
void nmo_schedule_loaded(int module);
/* A file came whose code nobody has read: from the next team on loops run as OpenMP
 * made them, for it may have taken the place of what they were judged with. */
void nmo_schedule_unread(const char *path);
void nmo_schedule_child(void); /* after fork */
void nmo_schedule_gone(int module);
/* Grows with each loop that is found. A team applies what was found before it
 * began, so that all of its threads decide alike. */
extern unsigned nmo_schedule_epoch;
/* Grows with each loop whose sweep turns out to be another than the plan's. */
extern unsigned nmo_schedule_ended;
enum { NMO_SCHEDULE_BUCKETS = 1024 };
extern struct nmo_loop *nmo_schedule_bucket[NMO_SCHEDULE_BUCKETS];
/* The loop whose bounds are asked for from this return address; NULL is none. */
static inline struct nmo_loop *nmo_schedule_of(uintptr_t site) {
    struct nmo_loop *l = nmo_schedule_bucket[site % NMO_SCHEDULE_BUCKETS];
    while (l && __atomic_load_n(&l->address, __ATOMIC_ACQUIRE) != site)
        l = l->next;
    return l;
}
/* The chunk that thread of a team of threads takes, -1: as OpenMP made it. The
 * same for all threads of a team. Counts the instance at thread 0. */
int nmo_schedule_chunk(struct nmo_loop *loop, const struct nmo_region *region, int threads, int thread);
/* Whether an instance of the loop, if named, is run as the plan says. Counts it at
 * the team's master, and says why not. */
bool nmo_schedule_fits(struct nmo_loop *loop, const struct nmo_region *region, int threads, bool master);
/* What libomp's unchunked static gives to thread number chunk of threads:
 * [lower, upper] become its part, *last whether that has the last iteration.
 * False, and nothing changed, where the loop is empty or too long to count. */
bool nmo_schedule_bounds_4(int32_t *lower, int32_t *upper, int32_t incr, uint32_t threads, uint32_t chunk, int32_t *last);
bool nmo_schedule_bounds_4u(uint32_t *lower, uint32_t *upper, int32_t incr, uint32_t threads, uint32_t chunk, int32_t *last);
bool nmo_schedule_bounds_8(int64_t *lower, int64_t *upper, int64_t incr, uint64_t threads, uint64_t chunk, int32_t *last);
bool nmo_schedule_bounds_8u(uint64_t *lower, uint64_t *upper, int64_t incr, uint64_t threads, uint64_t chunk, int32_t *last);

/* ---- hook_loop.c: where worksharing loops ask for their bounds -------------------------------- */

/* The caller is in the loop whose bounds are fetched at site; mode track tells the plugin. */
void nmo_loop_enter(uintptr_t site, unsigned about);
void nmo_loop_leave(void); /* the caller is in no static loop now; mode track tells the plugin */
/* Threads of the team that the caller, an address in the program, is in. */
int nmo_loop_threads(bool gomp, uintptr_t caller);
int nmo_loop_thread(bool gomp, uintptr_t caller); /* its number in that */

/* ---- hook_affine.c: loops that hand out their work, where the plan says how ------------------ */

/* A GOMP_parallel_loop_*: a region that is one loop. start is the call that begins
 * such a loop by itself. */
struct nmo_affine_whole {
    uintptr_t site;
    long first, end, incr, chunk;
    unsigned schedule; /* NMO_AFFINE_DYNAMIC and so on */
    const char *start;
};
enum { NMO_AFFINE_DYNAMIC = 2, NMO_AFFINE_GUIDED = 3, NMO_AFFINE_RUNTIME = 5, NMO_AFFINE_MONOTONIC = 16 };
/* Whether the loop that begins at site may be ours. */
static inline bool nmo_affine_possible(uintptr_t site) {
    return NMO_UNLIKELY(nmo_run.affine || nmo_schedule_of(site));
}
void nmo_affine_enter(const struct nmo_affine_whole *whole); /* by each member of the team */

/* ---- real.c: the next definition of what we interpose ---------------------------------------- */

void *nmo_real_find(const char *name, uintptr_t caller);
#define NMO_CALLED_FROM ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))
/* The same, found once and kept in *real. */
static inline void *nmo_real_of(void **real, const char *name, uintptr_t caller) {
    void *found = __atomic_load_n(real, __ATOMIC_ACQUIRE);
    if (NMO_UNLIKELY(!found)) {
        found = nmo_real_find(name, caller);
        __atomic_store_n(real, found, __ATOMIC_RELEASE);
    }
    return found;
}
void nmo_real_init(void);

/* ---- hook_malloc.c ---------------------------------------------------------------------------- */

bool nmo_malloc_init(void);      /* false: another allocator comes before us */
void nmo_malloc_watch_free(void); /* from now on free must look */

/* ---- mark.c ------------------------------------------------------------------------------------ */

void nmo_mark_init(void);
void nmo_mark(unsigned offset);
bool nmo_mark_only(uintptr_t fn); /* is fn a region that opens the window? */
extern bool nmo_mark_regions;     /* there are such regions */

/* ---- stats.c ----------------------------------------------------------------------------------- */

/* Once per process image: reads back what is live and writes the summary. True where it
 * was done now. */
bool nmo_stats_finish(void);
/* The image goes on: its next end counts, and reports, again. */
void nmo_stats_resume(void);
void nmo_stats_child(void);

/* ---- init.c ------------------------------------------------------------------------------------ */

extern int nmo_pid;
extern unsigned nmo_generation; /* of the process: one more in a forked child */
void nmo_init(void);
/* For hooks that must know the run: true where it is in force. */
static inline bool nmo_ready(void) {
    if (NMO_UNLIKELY(nmo_state == NMO_BOOT))
        nmo_init();
    return nmo_state == NMO_READY;
}

#pragma GCC visibility pop

#endif
