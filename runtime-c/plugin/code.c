/* code.c: which module and function an instruction belongs to, and which calls
 * leave the program's own code.
 *
 * Modules are found in /proc/self/maps when code of an unknown place is
 * translated, so they need nobody's help; functions are the ELF symbols of
 * .symtab, or of .dynsym where that is stripped. All of this happens at
 * translation, never at an access. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emulate.h"

struct symbol {
    uint64_t vaddr, end;
    uint32_t id; /* function id, 0 is none yet */
};

/* A variable of a page or more. */
struct data {
    uint64_t vaddr, end;
    uint32_t rec; /* its first page record, 0 is none yet */
};

struct module {
    uint64_t lo, hi, base;
    uint64_t plt_lo, plt_hi; /* vaddrs of the procedure linkage table */
    struct symbol *symbols;
    size_t count;
    struct data *data; /* by address */
    size_t data_count;
    uint32_t rest;     /* function id of code without a symbol */
    uint32_t rest_rec; /* first page record of what is no variable's */
    int index;     /* in the arena */
    bool tracker, dead;
    bool own; /* neither the system's nor a compiler's: a place here tells the user something */
};

static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules;
static size_t module_count, module_room;
static uint64_t tracker_lo, tracker_hi;
uint8_t nmo_code_foreign[65536];

static int by_address(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr ? 1 : x->end > y->end ? -1 : x->end < y->end;
}

/* Checks that [offset, offset + bytes) lies in a file of size bytes. */
static bool within(uint64_t offset, uint64_t bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

static void take_symbols(struct module *m, const Elf64_Sym *sym, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned type = ELF64_ST_TYPE(sym[i].st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym[i].st_shndx == SHN_UNDEF || sym[i].st_value == 0)
            continue;
        m->symbols[m->count++] = (struct symbol){sym[i].st_value, sym[i].st_value + sym[i].st_size, 0};
    }
}

static int by_start(const void *a, const void *b)
{
    const struct data *x = a, *y = b;
    return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void take_data(struct module *m, const Elf64_Sym *sym, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ELF64_ST_TYPE(sym[i].st_info) != STT_OBJECT || sym[i].st_size < 4096 || sym[i].st_shndx == SHN_UNDEF)
            continue;
        struct data *grown = realloc(m->data, (m->data_count + 1) * sizeof *grown);
        if (grown == NULL)
            break;
        m->data = grown;
        m->data[m->data_count++] = (struct data){sym[i].st_value, sym[i].st_value + sym[i].st_size, 0};
    }
    if (m->data_count > 0)
        qsort(m->data, m->data_count, sizeof *m->data, by_start);
}

/* The section headers of an ELF file image; NULL where there are none. */
static const Elf64_Shdr *sections(const char *image, size_t size)
{
    const Elf64_Ehdr *e = (const void *)image;
    if (size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_shentsize != sizeof(Elf64_Shdr) ||
        e->e_shoff % 8 != 0 || !within(e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr), size))
        return NULL;
    return (const void *)(image + e->e_shoff);
}

/* Finds .plt, .plt.got and .plt.sec, which adjoin. */
static void read_plt(struct module *m, const char *image, size_t size)
{
    const Elf64_Ehdr *e = (const void *)image;
    const Elf64_Shdr *s = sections(image, size);
    if (s == NULL || e->e_shstrndx >= e->e_shnum || !within(s[e->e_shstrndx].sh_offset, s[e->e_shstrndx].sh_size, size))
        return;
    const char *names = image + s[e->e_shstrndx].sh_offset;
    for (int i = 0; i < e->e_shnum; i++) {
        if (!within(s[i].sh_name, 5, s[e->e_shstrndx].sh_size) || strncmp(names + s[i].sh_name, ".plt", 4) != 0)
            continue;
        if (m->plt_hi == 0)
            m->plt_lo = s[i].sh_addr;
        m->plt_hi = s[i].sh_addr + s[i].sh_size;
    }
}

/* Reads the function symbols of an ELF file image; sorted, one per address. */
static void read_symbols(struct module *m, const char *image, size_t size)
{
    const Elf64_Ehdr *e = (const void *)image;
    const Elf64_Shdr *s = sections(image, size), *best = NULL;
    for (int i = 0; s != NULL && i < e->e_shnum; i++) {
        if (s[i].sh_type == SHT_SYMTAB || (s[i].sh_type == SHT_DYNSYM && best == NULL))
            best = &s[i];
    }
    if (best == NULL || best->sh_offset % 8 != 0 || !within(best->sh_offset, best->sh_size, size))
        return;
    size_t n = best->sh_size / sizeof(Elf64_Sym);
    m->symbols = calloc(n ? n : 1, sizeof *m->symbols);
    if (m->symbols == NULL)
        return;
    take_symbols(m, (const void *)(image + best->sh_offset), n);
    take_data(m, (const void *)(image + best->sh_offset), n);
    qsort(m->symbols, m->count, sizeof *m->symbols, by_address);
    size_t k = 0;
    for (size_t i = 0; i < m->count; i++)
        if (k == 0 || m->symbols[k - 1].vaddr != m->symbols[i].vaddr)
            m->symbols[k++] = m->symbols[i];
    m->count = k;
    for (size_t i = 0; i < k; i++)
        if (m->symbols[i].end == m->symbols[i].vaddr)
            m->symbols[i].end = i + 1 < k ? m->symbols[i + 1].vaddr : UINT64_MAX;
}

/* The p_vaddr of the first PT_LOAD, rounded down to a page. */
static uint64_t first_vaddr(const char *image, size_t size)
{
    const Elf64_Ehdr *e = (const void *)image;
    if (size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_phoff % 8 != 0 ||
        !within(e->e_phoff, (uint64_t)e->e_phnum * sizeof(Elf64_Phdr), size))
        return 0;
    const Elf64_Phdr *p = (const void *)(image + e->e_phoff);
    for (int i = 0; i < e->e_phnum; i++)
        if (p[i].p_type == PT_LOAD)
            return p[i].p_vaddr & ~4095ull;
    return 0;
}

static void read_file(struct module *m, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        char *image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (image != MAP_FAILED) {
            m->base -= first_vaddr(image, (size_t)st.st_size);
            read_symbols(m, image, (size_t)st.st_size);
            read_plt(m, image, (size_t)st.st_size);
            munmap(image, (size_t)st.st_size);
        }
    }
    close(fd);
}

static bool is_tracker(const char *path)
{
    const char *name = strrchr(path, '/');
    return !strcmp(name ? name + 1 : path, "libnumaopt.so") || !strcmp(path, nmo_config.preload);
}

/* Whether a file is a library of the system, or of a language wherever it lies:
 * first touches in it are its caller's. */
static bool is_library(const char *path)
{
    static const char *const language[] = {"ld-linux", "libc.", "libm.", "libgcc_s.", "libgomp.", "libomp.", "libiomp5.",
                                           "libgfortran.", "libquadmath.", "libstdc++.", "libc++.", "libc++abi."};
    const char *name = strrchr(path, '/') + 1;
    for (size_t i = 0; i < sizeof language / sizeof *language; i++)
        if (!strncmp(name, language[i], strlen(language[i])))
            return true;
    path += !strncmp(path, "/usr/", 5) ? 4 : 0;
    return !strncmp(path, "/lib/", 5) || !strncmp(path, "/lib32/", 7) || !strncmp(path, "/lib64/", 7);
}

static struct module *add_module(uint64_t lo, uint64_t hi, const char *path)
{
    if (module_count == module_room) {
        size_t room = module_room ? 2 * module_room : 64;
        struct module *grown = realloc(modules, room * sizeof *modules);
        if (grown == NULL)
            return NULL;
        modules = grown;
        module_room = room;
    }
    struct module *m = &modules[module_count];
    *m = (struct module){.lo = lo, .hi = hi, .base = lo, .index = -1, .own = true}; /* code made at run time, too */
    if (*path == '/') {
        read_file(m, path);
        m->tracker = is_tracker(path);
        m->own = !m->tracker && !is_library(path);
        struct nmo_a_section *s = &nmo_arena->section[NMO_SEC_MODULES];
        if (s->count < s->cap) {
            struct nmo_a_module *a = nmo_arena_at(NMO_SEC_MODULES, s->count);
            *a = (struct nmo_a_module){lo, hi, m->base, nmo_arena_text(path), 0};
            m->index = (int)s->count;
            __atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELEASE);
        }
    }
    module_count++;
    return m;
}

static struct module *find(uint64_t pc)
{
    for (size_t i = module_count; i-- > 0;)
        if (!modules[i].dead && pc >= modules[i].lo && pc < modules[i].hi)
            return &modules[i];
    return NULL;
}

/* Adds the module that covers pc, as /proc/self/maps has it now: all mappings
 * of one file from the one with offset 0 on, up to the next such one. */
static struct module *discover(uint64_t pc)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char text[5000], name[4096] = "";
    uint64_t lo = 0, hi = 0;
    if (f == NULL)
        return NULL;
    while (fgets(text, sizeof text, f) != NULL) {
        uint64_t from, to, offset;
        int at = 0;
        if (sscanf(text, "%lx-%lx %*s %lx %*s %*s %n", &from, &to, &offset, &at) < 3)
            continue;
        text[strcspn(text, "\n")] = 0;
        const char *path = at ? text + at : "";
        bool same = *path == '/' && !strcmp(path, name) && offset != 0;
        bool bss = *path == 0 && lo != 0 && from == hi && *name != 0;
        if (same || (bss && pc >= hi)) {
            hi = to;
        } else if (bss && from == hi) {
            hi = to; /* .bss and what else adjoins */
        } else {
            if (pc >= lo && pc < hi)
                break;
            snprintf(name, sizeof name, "%s", *path == '/' ? path : "");
            lo = from;
            hi = to;
        }
    }
    fclose(f);
    return pc >= lo && pc < hi ? add_module(lo, hi, name) : NULL;
}

static struct module *module_of(uint64_t pc)
{
    struct module *m = find(pc);
    return m ? m : discover(pc);
}

static uint32_t new_function(const struct module *m, uint64_t vaddr, bool nosymbol)
{
    uint32_t id = (uint32_t)nmo_arena_add(NMO_SEC_FUNCS, 1);
    if (id != 0) {
        nmo_code_foreign[id] = !m->own;
        *(struct nmo_a_code *)nmo_arena_at(NMO_SEC_FUNCS, id) = (struct nmo_a_code){vaddr, m->index, nosymbol};
    }
    return id;
}

static uint32_t function_in(struct module *m, uint64_t pc)
{
    uint64_t vaddr = pc - m->base;
    size_t lo = 0, hi = m->count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (m->symbols[mid].vaddr <= vaddr)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo > 0 && vaddr < m->symbols[lo - 1].end) {
        struct symbol *s = &m->symbols[lo - 1];
        if (s->id == 0)
            s->id = new_function(m, s->vaddr, false);
        return s->id;
    }
    if (m->rest == 0)
        m->rest = new_function(m, m->lo - m->base, true);
    return m->rest;
}

/* The function id of the instruction at pc; 0 is not known. */
uint32_t nmo_code_function(uint64_t pc, bool *tracker)
{
    pthread_mutex_lock(&code_lock);
    struct module *m = module_of(pc);
    uint32_t id = m && m->index >= 0 ? function_in(m, pc) : 0;
    *tracker = (m && m->tracker) || (pc >= tracker_lo && pc < tracker_hi);
    pthread_mutex_unlock(&code_lock);
    return id;
}

/* What is at an address: the module and the ELF vaddr. */
struct nmo_a_code nmo_code_at(uint64_t pc)
{
    pthread_mutex_lock(&code_lock);
    struct module *m = module_of(pc);
    struct nmo_a_code c = {pc, -1, 0};
    if (m && m->index >= 0)
        c = (struct nmo_a_code){pc - m->base, m->index, 0};
    pthread_mutex_unlock(&code_lock);
    return c;
}

static bool in_plt(const struct module *m, uint64_t pc)
{
    return pc - m->base >= m->plt_lo && pc - m->base < m->plt_hi;
}

static bool own(const struct module *m, uint64_t pc) { return m && m->own && !in_plt(m, pc); }

/* Whether the code at pc is the program's own: no system library's, no stub. */
bool nmo_code_own(uint64_t pc)
{
    pthread_mutex_lock(&code_lock);
    bool is = own(module_of(pc), pc);
    pthread_mutex_unlock(&code_lock);
    return is;
}

/* Whether a jump from the program's own code at pc to target is one to another
 * module, by way of the procedure linkage table. */
bool nmo_code_leaves(uint64_t pc, uint64_t target)
{
    pthread_mutex_lock(&code_lock);
    struct module *m = module_of(pc);
    bool leaves = own(m, pc) && in_plt(m, target);
    pthread_mutex_unlock(&code_lock);
    return leaves;
}

/* The variable that the middle of a page lies in: it has most of the page. Where one
 * lies in another, the one that begins last. */
static struct data *data_in(struct module *m, uint64_t page)
{
    uint64_t vaddr = (page << NMO_PAGE_SHIFT) + 2048 - m->base;
    size_t lo = 0, hi = m->data_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (m->data[mid].vaddr <= vaddr)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = lo; i > 0 && i + 16 > lo; i--)
        if (vaddr < m->data[i - 1].end)
            return &m->data[i - 1];
    return NULL;
}

uint32_t nmo_code_data(uint64_t page, uint32_t rec)
{
    pthread_mutex_lock(&code_lock);
    struct module *m = find(page << NMO_PAGE_SHIFT);
    struct data *d = m ? data_in(m, page) : NULL;
    uint32_t *first = d ? &d->rec : m ? &m->rest_rec : NULL;
    if (first != NULL && *first == 0)
        *first = rec;
    rec = first ? *first : 0;
    pthread_mutex_unlock(&code_lock);
    return rec;
}

void nmo_code_tracker(uint64_t lo, uint64_t hi)
{
    pthread_mutex_lock(&code_lock);
    tracker_lo = lo;
    tracker_hi = hi;
    pthread_mutex_unlock(&code_lock);
}

/* A module that has been loaded at base: known from now on, also if no code of it ever runs. */
void nmo_code_module(uint64_t base)
{
    pthread_mutex_lock(&code_lock);
    if (base != 0)
        module_of(base);
    pthread_mutex_unlock(&code_lock);
}

void nmo_code_unmap(uint64_t lo, uint64_t hi)
{
    pthread_mutex_lock(&code_lock);
    for (size_t i = 0; i < module_count; i++) {
        struct module *m = &modules[i];
        if (m->dead || m->lo < lo || m->lo >= hi)
            continue;
        m->dead = true;
        free(m->symbols);
        free(m->data);
        m->symbols = NULL;
        m->data = NULL;
        m->count = m->data_count = 0;
        if (m->index >= 0)
            ((struct nmo_a_module *)nmo_arena_at(NMO_SEC_MODULES, (uint64_t)m->index))->dead = 1;
    }
    pthread_mutex_unlock(&code_lock);
}

void nmo_code_child(void) { pthread_mutex_init(&code_lock, NULL); }
