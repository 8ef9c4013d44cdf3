/* object.c: which pages belong to which live object. */
#include "emulate.h"

/* Live objects by address: open addressing, linear probing, no tombstones. */
struct live {
    uint64_t addr; /* 0 is free */
    uint32_t object;
};

static pthread_mutex_t object_lock = PTHREAD_MUTEX_INITIALIZER;
static struct live *live;
static size_t live_size, live_count;

static size_t home_of(uint64_t addr) { return (addr * 0x9E3779B97F4A7C15ull >> 20) & (live_size - 1); }

static struct live *live_find(uint64_t addr)
{
    if (live_size == 0)
        return NULL;
    for (size_t i = home_of(addr); live[i].addr != 0; i = (i + 1) & (live_size - 1))
        if (live[i].addr == addr)
            return &live[i];
    return NULL;
}

static void live_put(uint64_t addr, uint32_t object)
{
    size_t i = home_of(addr);
    while (live[i].addr != 0)
        i = (i + 1) & (live_size - 1);
    live[i] = (struct live){addr, object};
    live_count++;
}

static int live_grow(void)
{
    if (live_size != 0 && live_count * 2 < live_size)
        return 0;
    struct live *old = live;
    size_t old_size = live_size, size = old_size ? 2 * old_size : 1024;
    struct live *fresh = calloc(size, sizeof *fresh);
    if (fresh == NULL)
        return -1;
    live = fresh;
    live_size = size;
    live_count = 0;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].addr != 0)
            live_put(old[i].addr, old[i].object);
    free(old);
    return 0;
}

static void live_remove(struct live *l)
{
    size_t i = (size_t)(l - live), j = i;
    live[i].addr = 0;
    live_count--;
    while (live[j = (j + 1) & (live_size - 1)].addr != 0) {
        size_t h = home_of(live[j].addr);
        if (((j - h) & (live_size - 1)) >= ((j - i) & (live_size - 1))) {
            live[i] = live[j];
            live[j].addr = 0;
            i = j;
        }
    }
}

/* Gives each page of [addr, addr + bytes) to the object, unless another one
 * covers more of it (only the first and the last page can be shared). */
static void cover(uint32_t object, uint64_t addr, uint64_t bytes)
{
    uint64_t end = addr + bytes;
    for (uint64_t page = addr >> NMO_PAGE_SHIFT; page << NMO_PAGE_SHIFT < end; page++) {
        uint64_t lo = page << NMO_PAGE_SHIFT, hi = lo + 4096;
        uint32_t mine = (uint32_t)((end < hi ? end : hi) - (addr > lo ? addr : lo));
        struct slot *s = nmo_slot(page, NULL);
        if (s->object != 0 && s->cover > mine)
            continue;
        s->object = object;
        s->cover = mine;
        if (s->rec != 0)
            nmo_slot_forget(s);
    }
}

static void uncover(uint32_t object, uint64_t addr, uint64_t bytes)
{
    for (uint64_t page = addr >> NMO_PAGE_SHIFT; page << NMO_PAGE_SHIFT < addr + bytes; page++) {
        struct slot *s = nmo_slot_find(page);
        if (s == NULL || s->object != object)
            continue;
        s->object = 0;
        s->cover = 0;
        if (s->rec != 0)
            nmo_slot_forget(s);
    }
}

static void end_object(struct live *l)
{
    const struct nmo_a_object *o = nmo_arena_at(NMO_SEC_OBJECTS, l->object);
    uncover(l->object, o->addr, o->bytes);
    live_remove(l);
}

static void begin_object(struct nmo_a_object o)
{
    pthread_mutex_lock(&object_lock);
    struct live *old = live_find(o.addr);
    if (old != NULL)
        end_object(old);
    uint32_t id = live_grow() == 0 ? (uint32_t)nmo_arena_add(NMO_SEC_OBJECTS, 1) : 0;
    if (id != 0) {
        *(struct nmo_a_object *)nmo_arena_at(NMO_SEC_OBJECTS, id) = o;
        live_put(o.addr, id);
        cover(id, o.addr, o.bytes);
    }
    pthread_mutex_unlock(&object_lock);
}

void nmo_object_alloc(uint64_t addr, uint64_t bytes, const struct nmo_alloc *alloc)
{
    if (addr == 0 || bytes == 0 || addr + bytes < addr)
        return;
    begin_object((struct nmo_a_object){addr, bytes, alloc->site, alloc->rank, alloc->ordinal, alloc->kind,
                                       alloc->overlaps, nmo_space_file(addr) ? NMO_OBJECT_FILE : 0});
}

void nmo_object_free(uint64_t addr)
{
    pthread_mutex_lock(&object_lock);
    struct live *l = live_find(addr);
    if (l != NULL)
        end_object(l);
    pthread_mutex_unlock(&object_lock);
}

/* The stack of a thread; the same stack under the same rank is one object. */
void nmo_object_stack(uint32_t rank, uint64_t lo, uint64_t hi)
{
    if (lo >= hi || lo == 0)
        return;
    pthread_mutex_lock(&object_lock);
    struct live *l = live_find(lo);
    const struct nmo_a_object *o = l ? nmo_arena_at(NMO_SEC_OBJECTS, l->object) : NULL;
    bool same = o && o->kind == NMO_KIND_STACK && o->rank == rank && o->bytes == hi - lo;
    if (same)
        cover(l->object, lo, hi - lo); /* after an munmap in between */
    pthread_mutex_unlock(&object_lock);
    if (!same)
        begin_object((struct nmo_a_object){lo, hi - lo, 0, rank, 0, NMO_KIND_STACK, 0, 0});
}

void nmo_object_child(void) { pthread_mutex_init(&object_lock, NULL); }
