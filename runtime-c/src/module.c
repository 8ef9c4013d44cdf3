/* module.c: which ELF files are in the process, and which of the run file's
 * modules they are: by build id where both have one, else by base name; the
 * program itself by real path. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>

#include "../plugin/wire.h"
#include "cfi.h"
#include "nmo.h"
#include "sys.h"

enum { MAX_LOADED = 2048, MAX_BUILD_ID = 64, PATH_BYTES = 4096 };

uintptr_t nmo_text_lo, nmo_text_hi;

/* Readers take no lock. A file that went has hi = 0, and its place is free. */
static struct nmo_loaded loaded[MAX_LOADED];
static int nloaded;
static char program_path[PATH_BYTES];

static unsigned long long seen_adds, seen_subs;
static int scanning;
static bool changed;
static int present[MAX_LOADED]; /* by scan number */
static int scan_number;

static const char *base_name(const char *path) {
    const char *base = path;
    for (; *path; path++)
        if (*path == '/')
            base = path + 1;
    return base;
}

/* Build id of a loaded file in hex; "" is none. */
static void build_id_of(const struct dl_phdr_info *info, char *hex) {
    *hex = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(info->dlpi_addr + ph->p_vaddr), *end = at + ph->p_memsz;
        while (end - at >= (long)sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            size_t name = (note->n_namesz + 3u) & ~3u, desc = (note->n_descsz + 3u) & ~3u;
            const unsigned char *id = (const unsigned char *)at + sizeof *note + name;
            if ((size_t)(end - at) < sizeof *note + name + desc)
                break;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz < MAX_BUILD_ID) {
                for (unsigned b = 0; b < note->n_descsz; b++) {
                    *hex++ = "0123456789abcdef"[id[b] >> 4];
                    *hex++ = "0123456789abcdef"[id[b] & 15];
                }
                *hex = 0;
                return;
            }
            at += sizeof *note + name + desc;
        }
    }
}

static bool is_program(const char *path) {
    return nmo_mem_equal(path, "-") || nmo_mem_equal(path, "/proc/self/exe");
}

static bool is_module(const struct nmo_module *m, const struct nmo_loaded *in, const char *build_id) {
    if (is_program(m->path))
        return !*in->path;
    if (*m->build_id && *build_id)
        return nmo_mem_equal(m->build_id, build_id);
    const char *path = *in->path ? in->path : program_path;
    return nmo_mem_equal(base_name(m->path), base_name(path));
}

/* Whether the loops of the plan were judged with this file. Without a build id it is
 * told by its whole path. */
static bool is_read(const struct nmo_loaded *in, const char *build_id) {
    const char *path = *in->path ? in->path : program_path;
    for (int i = 0; i < nmo_run.nread; i++) {
        const struct nmo_module *m = &nmo_run.read[i];
        if (*m->build_id || *build_id ? nmo_mem_equal(m->build_id, build_id) : nmo_mem_equal(m->path, path))
            return true;
    }
    return false;
}

static bool is_plain(const struct nmo_loaded *in) {
    const char *base = base_name(in->path);
    for (int i = 0; i < nmo_run.nplain; i++) {
        const char *rest = base, *stem = nmo_run.plain[i];
        while (*stem && *rest == *stem)
            rest++, stem++;
        if (!*stem && rest[0] == '.' && rest[1] == 's' && rest[2] == 'o')
            return true;
    }
    return false;
}

static void describe(struct nmo_loaded *in, const struct dl_phdr_info *info) {
    *in = (struct nmo_loaded){.base = info->dlpi_addr, .lo = UINTPTR_MAX, .path = info->dlpi_name ? info->dlpi_name : ""};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t lo = info->dlpi_addr + ph->p_vaddr, hi = lo + ph->p_memsz;
        if (ph->p_type == PT_LOAD) {
            in->lo = lo < in->lo ? lo : in->lo;
            in->hi = hi > in->hi ? hi : in->hi;
            if (ph->p_flags & PF_W && in->nwritable < 4)
                in->writable[in->nwritable++] = (struct nmo_segment){lo, lo + ph->p_filesz, hi};
        } else if (ph->p_type == PT_GNU_RELRO) {
            in->relro_lo = lo, in->relro_hi = hi;
        } else if (ph->p_type == PT_GNU_EH_FRAME) {
            in->eh_frame_hdr = (const void *)lo;
        }
    }
}

bool nmo_module_other;

/* A file of the plan's name that is another build than the plan's. */
static bool is_other(const struct nmo_module *m, const struct nmo_loaded *in, const char *build_id) {
    return !is_program(m->path) && *m->build_id && *build_id && *in->path &&
           nmo_mem_equal(base_name(m->path), base_name(in->path)) && !nmo_mem_equal(m->build_id, build_id);
}

static void resolve_run(struct nmo_loaded *in, const char *build_id) {
    for (int i = 0; i < nmo_run.nmodules; i++) {
        struct nmo_module *m = &nmo_run.modules[i];
        nmo_module_other = nmo_module_other || is_other(m, in, build_id);
        if (!m->loaded && is_module(m, in, build_id)) {
            m->base = in->base;
            m->loaded = true;
            nmo_schedule_loaded(i);
            for (int o = 0; o < nmo_run.nobjects; o++)
                if (nmo_run.objects[o].kind == NMO_GLOBAL && nmo_run.objects[o].module == i)
                    nmo_place_global(&nmo_run.objects[o], in);
        }
    }
    for (int i = 0; i < nmo_run.nonly; i++) {
        struct nmo_only *only = &nmo_run.only[i];
        const char *path = *in->path ? in->path : program_path;
        if (!only->address && (is_program(only->path) ? !*in->path : nmo_mem_equal(base_name(only->path), base_name(path))))
            only->address = in->base + only->offset;
    }
}

static void tell(const struct nmo_loaded *in) {
    nmo_tell(NMO_MODULE, in->base, (uintptr_t)(*in->path ? in->path : program_path), 0, 0, 0);
}

static int find_same(const struct nmo_loaded *in) {
    for (int i = 0; i < nloaded; i++)
        if (loaded[i].hi == in->hi && loaded[i].base == in->base && loaded[i].path == in->path)
            return i;
    return -1;
}

static int keep(const struct nmo_loaded *in) {
    int i = 0;
    while (i < nloaded && loaded[i].hi)
        i++;
    if (i == MAX_LOADED)
        return -1;
    struct nmo_loaded unready = *in;
    unready.hi = 0;
    loaded[i] = unready;
    __atomic_store_n(&loaded[i].hi, in->hi, __ATOMIC_RELEASE);
    if (i == nloaded)
        __atomic_store_n(&nloaded, i + 1, __ATOMIC_RELEASE);
    return i;
}

static int visit(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (scan_number > 1 && info->dlpi_adds == seen_adds && info->dlpi_subs == seen_subs && !changed)
        return 1;
    seen_adds = info->dlpi_adds;
    seen_subs = info->dlpi_subs;
    changed = true;
    struct nmo_loaded in;
    describe(&in, info);
    int i = find_same(&in);
    if (i < 0) {
        i = keep(&in);
        if (i < 0) { /* full: not known, but those that are known are still there */
            if (nmo_run.nread)
                nmo_schedule_unread(in.path);
            return 0;
        }
        char id[2 * MAX_BUILD_ID];
        build_id_of(info, id);
        tell(&in);
        resolve_run(&in, id);
        uintptr_t own = (uintptr_t)&nmo_module_scan;
        if (own >= in.lo && own < in.hi) {
            nmo_text_lo = in.lo;
            nmo_text_hi = in.hi;
        } else if (nmo_run.nread && !is_plain(&in) && !is_read(&in, id)) {
            nmo_schedule_unread(*in.path ? in.path : program_path);
        }
    }
    present[i] = scan_number;
    return 0;
}

/* Modules of the run in files that were unloaded are no longer where they were. */
static void forget_gone(void) {
    bool gone = false;
    for (int i = 0; i < nloaded; i++) {
        if (!loaded[i].hi || present[i] == scan_number)
            continue;
        loaded[i].hi = 0;
        gone = true;
        for (int m = 0; m < nmo_run.nmodules; m++)
            if (nmo_run.modules[m].loaded && nmo_run.modules[m].base == loaded[i].base) {
                nmo_run.modules[m].loaded = false;
                nmo_schedule_gone(m);
            }
    }
    if (gone)
        nmo_cfi_forget();
}

bool nmo_module_scan(void) {
    if (__atomic_exchange_n(&scanning, 1, __ATOMIC_ACQUIRE))
        return false;
    if (!program_path[0])
        nmo_sys_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)program_path, PATH_BYTES - 1, 0, 0);
    changed = false;
    scan_number++;
    nmo_emu_pause();
    dl_iterate_phdr(visit, NULL);
    nmo_emu_resume();
    if (changed)
        forget_gone();
    bool result = changed;
    __atomic_store_n(&scanning, 0, __ATOMIC_RELEASE);
    return result;
}

/* dlopen itself allocates before it is done, so one look is not enough. A look
 * by the thread that loads weighs as much as LOOK by others, which do not know
 * how far it is. */
enum { LOOKS = 64, LOOK = 4096 };
int nmo_module_pending;
bool nmo_module_watched;
static const struct nmo_self *loading;

void nmo_module_expect(void) {
    __atomic_store_n(&loading, &nmo_self, __ATOMIC_RELAXED);
    nmo_object_all(LOOKS * LOOK);
    if (nmo_run.nread) /* the looks may be over before the file is there */
        __atomic_store_n(&nmo_module_watched, true, __ATOMIC_RELAXED);
}

/* True for the look with which waiting ends. */
static bool count_look(void) {
    int weight = __atomic_load_n(&loading, __ATOMIC_RELAXED) == &nmo_self ? LOOK : 1;
    int left = __atomic_load_n(&nmo_module_pending, __ATOMIC_RELAXED), next;
    do
        next = left > weight ? left - weight : 0;
    while (left > 0 && !__atomic_compare_exchange_n(&nmo_module_pending, &left, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return left > 0 && !next;
}

void nmo_module_refresh(void) {
    bool last = count_look();
    if (nmo_module_scan() || last)
        nmo_object_init();
}

/* What was loaded until now is known before the fork: in the child the loader's
 * lock may be another thread's for ever. */
void nmo_module_before_fork(void) {
    if (__atomic_load_n(&nmo_module_pending, __ATOMIC_RELAXED))
        nmo_module_refresh();
    while (__atomic_exchange_n(&scanning, 1, __ATOMIC_ACQUIRE))
        nmo_sys_yield();
}

void nmo_module_after_fork(void) {
    __atomic_store_n(&scanning, 0, __ATOMIC_RELEASE);
}

void nmo_module_child(void) {
    nmo_module_watched = false;
    if (nmo_module_pending) {
        nmo_module_pending = 0;
        nmo_object_init();
    }
}

void nmo_module_each(void (*call)(const struct nmo_loaded *in)) {
    int n = __atomic_load_n(&nloaded, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++)
        if (__atomic_load_n(&loaded[i].hi, __ATOMIC_ACQUIRE) && loaded[i].lo != nmo_text_lo)
            call(&loaded[i]);
}

const struct nmo_loaded *nmo_module_of(uintptr_t address) {
    int n = __atomic_load_n(&nloaded, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++)
        if (address >= loaded[i].lo && address < loaded[i].hi)
            return &loaded[i];
    return NULL;
}
