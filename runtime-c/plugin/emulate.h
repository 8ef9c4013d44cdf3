/* emulate.h: types and all cross-file functions of emulate.so, grouped under
 * the file that defines them.
 *
 * The plugin lives in the QEMU process, not in the program: it may use libc
 * freely, but a callback may interrupt nothing and must not block for long (the
 * longest is pace.c, for milliseconds). Memory accesses arrive concurrently on all
 * vCPUs; everything they need without a lock is in struct vcpu, in the vCPU's `seen`
 * table and in the arena.
 */
#ifndef NMO_EMULATE_H
#define NMO_EMULATE_H

#include <pthread.h>
#include <time.h>

#include "arena.h"
#include "cache.h"
#include "qemu_api.h"
#include "wire.h"

/* Nothing here is seen outside emulate.so: no detour by its offset table. */
#pragma GCC visibility push(hidden)

#define NMO_PAGE_SHIFT 12
#define NMO_MAX_VCPUS 8192
#define NMO_SEEN 2048 /* entries of a vCPU's table of pages, a power of two */
#define NMO_DEAD 0xffffffffu

enum nmo_op_kind { NMO_LOAD = 0, NMO_STORE = 1 };

/* struct vcpu flags: any of them sends every access through the slow path. */
#define NMO_V_PAUSED 1u /* not counted */
#define NMO_V_NEW 2u    /* a thread that has not said who it is */
#define NMO_V_SHARED 4u /* other threads run on the same CPU */
#define NMO_V_OFF 8u    /* no such vCPU, or it has ended */

/* What is known of a page of the program's address space; never freed. */
struct slot {
    uint32_t rec;    /* page record of the arena, 0 is none (yet) */
    uint32_t object; /* 0 is none */
    int16_t home;    /* -1 is not known */
    uint8_t flags;
    uint8_t placed; /* the program chose the home, or moved the page */
    uint32_t cover; /* bytes of the page that object covers */
};
#define NMO_S_KNOWN 1 /* flags below are decided */
#define NMO_S_OPEN 2  /* the next store decides the home */
#define NMO_S_ZERO 4  /* reads are served by the zero page */
#define NMO_S_ANY 8   /* a load decides the home, too: shared anonymous memory */

/* A memory policy: mode 0 is none, else one of linux/mempolicy.h, of which preferred
 * has a node and local has none. */
struct policy {
    uint64_t mask; /* nodes */
    uint8_t mode;
    uint8_t own; /* the program's, not the plan's */
};

struct seen {
    uint64_t page;
    struct slot *slot;
    uint32_t *dir; /* directory words of the page's 64 lines */
    struct nmo_a_block *block;
};

struct vcpu {
    struct nmo_l1 *l1;
    uint32_t base, fnmask; /* region key = base | (function & fnmask) */
    uint32_t flags;
    uint32_t thread; /* index in the arena's threads */
    uint32_t cpu, node;
    uint16_t instance; /* of its region in its row, as struct nmo_a_block has it */
    struct seen *seen;
    uint64_t until;     /* the L1's clock at which to look at the others, see pace.c */
    uint64_t countdown; /* to the next sample */
    uint64_t random;
    /* Rarely used from here on. */
    uint32_t paced;  /* others wait for it */
    int64_t ahead;   /* its time is the L1's clock and this */
    uint64_t looked, looked_cpu; /* its time when another last looked, and its CPU time at the first such look */
    uint32_t looked_epoch, starved;
    uint32_t tid, away; /* of the host; away: in a system call, or ended */
    clockid_t cpu_clock;
    uint32_t paused, rank, waiting, start;
    uint32_t loop;
    uint32_t row;    /* loop of the last region that it began as a master */
    uint64_t region; /* outlined function, 0 is none */
    struct nmo_dram *dram; /* see dram.c; NULL is no room */
    uint64_t caller; /* code word of the last call out of the program's own code, 0 is none */
    struct policy policy; /* the thread's own */
    int64_t num;     /* the system call under way */
    uint64_t arg[6];
} __attribute__((aligned(256)));

struct cpu_line {
    uint32_t cpu, node;
};

struct config {
    struct cpu_line line[NMO_CACHE_MAX_CPUS]; /* in rank order */
    unsigned lines, cpus, nodes;
    struct nmo_cache_size l1, l2, llc;
    uint64_t period;
    char socket[104], qemu[4096], preload[4096], run[4096];
    char *args[32]; /* of QEMU, before the program */
    unsigned nargs;
};

extern struct config nmo_config;
extern struct nmo_cache_model nmo_model;
extern struct vcpu *nmo_vcpus;
extern unsigned nmo_thread_count; /* one above the highest index of a vCPU in use */

/* config.c */
int nmo_config_read(const char *path);

/* arena.c */
extern struct nmo_a_header *nmo_arena;
int nmo_arena_open(void);
void nmo_arena_child(void);
int nmo_arena_send(void);
void *nmo_arena_at(enum nmo_section_id section, uint64_t index);
uint64_t nmo_arena_add(enum nmo_section_id section, uint64_t n); /* index of the first of n new entries; 0: full */
uint32_t nmo_arena_text(const char *text);
void nmo_arena_note(uint32_t kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern struct nmo_a_block *nmo_blocks;
extern struct nmo_a_page *nmo_pages;

/* code.c */
uint32_t nmo_code_function(uint64_t pc, bool *tracker);
struct nmo_a_code nmo_code_at(uint64_t pc);
bool nmo_code_own(uint64_t pc);
uint32_t nmo_code_data(uint64_t page, uint32_t rec); /* the first record of the variable or module that a page is of; 0: none */
extern uint8_t nmo_code_foreign[65536]; /* by function id: not the program's own */
bool nmo_code_leaves(uint64_t pc, uint64_t target);
void nmo_code_tracker(uint64_t lo, uint64_t hi);
void nmo_code_module(uint64_t base);
void nmo_code_unmap(uint64_t lo, uint64_t hi);
void nmo_code_child(void);

/* space.c: the program's mappings, page slots, homes and memory policy */
struct slot *nmo_slot(uint64_t page, uint32_t **dir);
struct slot *nmo_slot_find(uint64_t page); /* NULL where nothing is known */
void nmo_slot_forget(struct slot *slot);   /* its record takes no more counts */
void nmo_space_map(uint64_t lo, uint64_t hi, bool file, bool shared, uint32_t id, uint64_t from);
bool nmo_space_file(uint64_t addr);
void nmo_space_unmap(uint64_t lo, uint64_t hi);
void nmo_space_discard(uint64_t lo, uint64_t hi);
void nmo_space_move(uint64_t from, uint64_t to, uint64_t bytes);
int nmo_space_kind(uint64_t page, int node, int *home); /* slot flags of an untouched page */
void nmo_space_child(void);
struct policy nmo_policy_of(uint64_t page); /* mode 0: the toucher's */
int nmo_policy_node(struct policy policy, uint64_t page, int node); /* of a page that a thread of node touches */
int64_t nmo_policy_make(struct policy *policy, uint64_t mode, uint64_t mask);
int64_t nmo_policy_set(uint64_t addr, uint64_t len, uint64_t mode, uint64_t mask);
int64_t nmo_policy_move(struct nmo_move *move);

/* file.c: which node holds what of a file in the page cache */
uint32_t nmo_file_id(uint64_t dev, uint64_t inode, bool ahead); /* 0: no room */
uint32_t nmo_file_of(int fd);                                   /* 0: no regular file */
int nmo_file_touch(uint32_t id, uint64_t page, int node);       /* home of a page that a thread of node touches */
void nmo_file_used(int fd, int64_t offset, uint64_t bytes, int node); /* by read or write; offset -1: up to the file's position */
void nmo_file_child(void);

/* object.c */
void nmo_object_alloc(uint64_t addr, uint64_t bytes, const struct nmo_alloc *alloc);
void nmo_object_free(uint64_t addr);
void nmo_object_stack(uint32_t rank, uint64_t lo, uint64_t hi);
void nmo_object_child(void);

/* thread.c */
void nmo_thread_new(unsigned vcpu);
void nmo_thread_end(unsigned vcpu);
void nmo_thread_is(struct vcpu *v, uint32_t rank, uint32_t cpu, const struct nmo_thread *thread);
void nmo_thread_moved(uint32_t rank, uint32_t cpu, bool pinned);
bool nmo_thread_adopt(struct vcpu *v);
void nmo_thread_region(struct vcpu *v, uint64_t fn, bool master, uint64_t instance, uint64_t row);
void nmo_thread_loop(struct vcpu *v, uint64_t site, uint32_t about, bool master, uint64_t last);
void nmo_thread_dynamic(uint64_t fn, bool loops);
void nmo_thread_pause(struct vcpu *v, int by);
void nmo_thread_child(unsigned vcpu);

/* pace.c */
void nmo_pace(struct vcpu *v);
void nmo_pace_touching(struct vcpu *v);
void nmo_pace_coming(int threads);
bool nmo_pace_wakes(uint64_t op); /* a futex operation that wakes threads */
void nmo_pace_futex(uint64_t op, int64_t result);
void nmo_pace_join(struct vcpu *v);
void nmo_pace_leave(struct vcpu *v);
void nmo_pace_child(struct vcpu *v);

/* touch.c */
qemu_plugin_vcpu_mem_cb_t nmo_touch_callback(void);
void nmo_touch_kernel(struct vcpu *v, uint64_t addr, uint64_t bytes, bool write);
void nmo_touch_child(void);

/* dram.c: which instructions access DRAM, and when */
void nmo_dram_access(struct vcpu *v, uint64_t code, int op, uint32_t rec, uint32_t region, uint32_t weight);
void nmo_dram_tell(struct vcpu *v);
void nmo_dram_region(struct vcpu *v);
void nmo_dram_wakes(struct vcpu *v, uint64_t addr, uint32_t value, bool all);
void nmo_dram_waits(struct vcpu *v, uint64_t addr, uint32_t value);
void nmo_dram_woken(struct vcpu *v, uint64_t addr);
void nmo_dram_leaves(struct vcpu *v);
void nmo_dram_begins(struct vcpu *v, uint64_t fn, bool master);
void nmo_dram_paced(struct vcpu *v, int64_t by, uint64_t apart);
void nmo_dram_shared(struct vcpu *v);
struct nmo_dram *nmo_dram_new(struct nmo_dram *old);
void nmo_dram_child(void);
uint32_t nmo_dram_owner(uint32_t object, uint64_t page, uint32_t rec);

/* syscall.c */
void nmo_syscall_enter(unsigned vcpu, int64_t num, const uint64_t arg[6]);
void nmo_syscall_leave(unsigned vcpu, int64_t num, int64_t ret);

/* op.c */
void nmo_op_do(struct vcpu *v, uint64_t op, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);

/* exec.c: replaces this process by the program under the emulator; returns
 * where the kernel must answer (no such file, ...) or the program must leave
 * the emulator. */
void nmo_exec_follow(struct policy policy, int dirfd, const char *path, char *const argv[], char *const envp[], int flags);

#pragma GCC visibility pop

#endif
