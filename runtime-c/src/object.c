/* object.c: which object of the plan an allocation is. */
#include "nmo.h"

size_t nmo_object_min = SIZE_MAX;

/* Innermost frames of the plan's objects, resolved. */
struct first {
    uintptr_t lo, hi; /* of return address - 1 */
    uint64_t min_bytes, max_bytes;
    enum nmo_kind kind;
};
enum { MAX_FIRST = 1024, FILTERS = 8 };

/* Readers take no lock: a new filter is built beside the one in force, and the
 * place of an old one is used again only many changes of modules later. */
static struct filter {
    int n;
    bool overflow; /* then every size that fits is looked at */
    struct first first[MAX_FIRST];
} filters[FILTERS], *in_force = filters;
static nmo_lock filter_lock;

/* Bumped when modules come or go: a site's matches are then looked up again. */
static uint32_t generation;

/* An object that counts ordinals must see what the profile counted, which is
 * every allocation of at least NMO_SMALL. */
static uint64_t smallest(const struct nmo_object *o) {
    return o->rank >= 0 && o->min_bytes > NMO_SMALL ? NMO_SMALL : o->min_bytes;
}

static void add_first(struct filter *to, uintptr_t lo, uintptr_t hi, const struct nmo_object *o) {
    if (to->n == MAX_FIRST) {
        to->overflow = true;
        return;
    }
    to->first[to->n++] = (struct first){lo, hi, smallest(o), o->rank >= 0 ? UINT64_MAX : o->max_bytes, o->kind};
}

static size_t build(struct filter *to) {
    size_t min = SIZE_MAX;
    to->n = 0;
    to->overflow = false;
    for (int i = 0; i < nmo_run.nobjects; i++) {
        const struct nmo_object *o = &nmo_run.objects[i];
        bool any = true; /* no line for frame 0 */
        if (o->kind == NMO_GLOBAL)
            continue;
        if (o->kind == NMO_HEAP && smallest(o) < min)
            min = smallest(o);
        for (unsigned j = 0; j < o->nframes; j++) {
            const struct nmo_frame *f = &o->frames[j];
            const struct nmo_module *m = &nmo_run.modules[f->module];
            any = any && f->k;
            if (!f->k && m->loaded)
                add_first(to, m->base + f->lo, m->base + f->hi, o);
        }
        if (any)
            add_first(to, 0, UINTPTR_MAX, o);
    }
    return min;
}

void nmo_object_init(void) {
    nmo_lock_take(&filter_lock);
    struct filter *next = &filters[(in_force - filters + 1) % FILTERS];
    size_t min = build(next);
    __atomic_store_n(&in_force, next, __ATOMIC_RELEASE);
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
    nmo_object_min = nmo_track || __atomic_load_n(&nmo_module_pending, __ATOMIC_RELAXED) ? 0 : min;
    nmo_lock_release(&filter_lock);
}

void nmo_object_all(int looks) {
    nmo_lock_take(&filter_lock);
    __atomic_store_n(&nmo_module_pending, looks, __ATOMIC_RELAXED);
    nmo_object_min = 0;
    nmo_lock_release(&filter_lock);
}

void nmo_object_before_fork(void) {
    nmo_lock_take(&filter_lock);
}

void nmo_object_after_fork(void) {
    nmo_lock_release(&filter_lock);
}

bool nmo_object_possible(uintptr_t ra, size_t bytes, enum nmo_kind kind) {
    const struct filter *now = __atomic_load_n(&in_force, __ATOMIC_ACQUIRE);
    const struct first *first = now->first;
    if (now->overflow)
        return true;
    for (int i = 0; i < now->n; i++)
        if (ra - 1 >= first[i].lo && ra - 1 < first[i].hi && bytes >= first[i].min_bytes &&
            bytes <= first[i].max_bytes && kind == first[i].kind)
            return true;
    return false;
}

/* Every frame number below depth that has lines must match one of them. */
static bool matches(const struct nmo_object *o, const struct nmo_site *site) {
    if (o->depth > site->nframes)
        return false;
    uint64_t wanted = 0, found = 0;
    for (unsigned j = 0; j < o->nframes; j++) {
        const struct nmo_frame *f = &o->frames[j];
        const struct nmo_module *m = &nmo_run.modules[f->module];
        wanted |= 1ull << f->k;
        uintptr_t at = site->frames[f->k] - 1 - m->base;
        if (m->loaded && at >= f->lo && at < f->hi)
            found |= 1ull << f->k;
    }
    return wanted == found;
}

static void match(struct nmo_site *site, uint32_t now) {
    enum { MOST = sizeof site->match / sizeof site->match[0] };
    uint32_t n = 0;
    for (int i = 0; i < nmo_run.nobjects; i++) {
        const struct nmo_object *o = &nmo_run.objects[i];
        if (o->kind == NMO_GLOBAL || !matches(o, site))
            continue;
        if (n < MOST)
            site->match[n] = (uint32_t)i;
        n++;
    }
    site->nmatch = n;
    __atomic_store_n(&site->told, now, __ATOMIC_RELEASE);
}

static struct nmo_object *consider(struct nmo_object *o, int rank, size_t bytes, enum nmo_kind kind, uint64_t *offset) {
    if (o->kind != kind)
        return NULL;
    *offset = 0;
    if (o->rank >= 0) {
        if (o->rank != rank)
            return NULL;
        uint64_t ordinal = __atomic_fetch_add(&o->ordinal, 1, __ATOMIC_RELAXED);
        if (ordinal < o->first || ordinal - o->first >= o->count)
            return NULL;
        *offset = ordinal - o->first;
    }
    return bytes >= o->min_bytes && bytes <= o->max_bytes ? o : NULL;
}

struct nmo_object *nmo_object_next(struct nmo_site *site, int rank, size_t bytes, enum nmo_kind kind, uint64_t *offset) {
    enum { MOST = sizeof site->match / sizeof site->match[0] };
    struct nmo_object *found = NULL;
    uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&site->told, __ATOMIC_ACQUIRE) != now)
        match(site, now);
    bool all = site->nmatch > MOST; /* too many to keep: look at each */
    for (uint32_t i = 0; i < (all ? (uint32_t)nmo_run.nobjects : site->nmatch); i++) {
        struct nmo_object *o = &nmo_run.objects[all ? i : site->match[i]];
        if (all && (o->kind == NMO_GLOBAL || !matches(o, site)))
            continue;
        uint64_t at;
        struct nmo_object *fits = consider(o, rank, bytes, kind, &at);
        if (fits && !found) {
            found = fits;
            *offset = at;
        }
    }
    return found;
}
