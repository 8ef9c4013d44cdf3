/* op.c: the runtime's magic system calls (wire.h). */
#include "emulate.h"

static void hello(uint64_t version, struct nmo_hello_reply *reply)
{
    if (version != NMO_WIRE_VERSION)
        nmo_arena_note(NMO_NOTE_WARNING, "libnumaopt.so speaks version %lu of the wire, emulate.so %d: rebuild both",
                       version, NMO_WIRE_VERSION);
    __atomic_fetch_or(&nmo_arena->flags, NMO_ARENA_HELLO, __ATOMIC_RELAXED);
    if (reply != NULL) {
        reply->version = NMO_WIRE_VERSION;
        reply->small_slots = (uint32_t)nmo_arena->section[NMO_SEC_SMALL].cap;
        reply->small = nmo_arena_at(NMO_SEC_SMALL, 0);
    }
}

static void site(uint64_t id, uint64_t n, const uint64_t *frames)
{
    struct nmo_a_section *s = &nmo_arena->section[NMO_SEC_SITES];
    if (id == 0 || id >= s->cap || n > 4096)
        return;
    uint64_t first = nmo_arena_add(NMO_SEC_FRAMES, n);
    if (first == 0 && n != 0)
        return;
    memcpy(nmo_arena_at(NMO_SEC_FRAMES, first), frames, n * sizeof *frames);
    *(struct nmo_a_site *)nmo_arena_at(NMO_SEC_SITES, id) = (struct nmo_a_site){(uint32_t)first, (uint32_t)n};
    for (uint64_t i = 0; i < n; i++)
        nmo_code_module(frames[i] - 1); /* so that ingest can name it */
    uint64_t count = __atomic_load_n(&s->count, __ATOMIC_RELAXED);
    while (count <= id && !__atomic_compare_exchange_n(&s->count, &count, id + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

void nmo_op_do(struct vcpu *v, uint64_t op, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
    switch ((enum nmo_op)op) {
    case NMO_HELLO:
        hello(a, (struct nmo_hello_reply *)b);
        break;
    case NMO_TRACKER:
        nmo_code_tracker(a, b);
        break;
    case NMO_PAUSE:
        nmo_thread_pause(v, 1);
        break;
    case NMO_RESUME:
        nmo_thread_pause(v, -1);
        break;
    case NMO_MODULE:
        nmo_code_module(a);
        break;
    case NMO_THREAD_START:
        nmo_thread_is(v, (uint32_t)a, (uint32_t)b, (const struct nmo_thread *)d);
        break;
    case NMO_THREAD_MOVED:
        nmo_thread_moved((uint32_t)a, (uint32_t)b, d != 0);
        break;
    case NMO_THREAD_END:
        nmo_thread_end((unsigned)(v - nmo_vcpus));
        break;
    case NMO_REGION:
        nmo_thread_region(v, a, b != 0, c, d);
        break;
    case NMO_DYNAMIC:
        nmo_thread_dynamic(a, b != 0);
        break;
    case NMO_LOOP:
        nmo_thread_loop(v, a, (uint32_t)b, c != 0, d);
        break;
    case NMO_SITE:
        site(a, b, (const uint64_t *)c);
        break;
    case NMO_ALLOC:
        if (c != 0)
            nmo_object_alloc(a, b, (const struct nmo_alloc *)c);
        break;
    case NMO_FREE:
        nmo_object_free(a);
        break;
    case NMO_BIND: {
        int64_t ret = nmo_policy_set(a, b, c, d);
        if (e != 0)
            *(long *)e = ret;
        break;
    }
    case NMO_MOVE:
        if (a != 0)
            ((struct nmo_move *)a)->ret = nmo_policy_move((struct nmo_move *)a);
        break;
    case NMO_PREFER:
        nmo_policy_make(&v->policy, a | NMO_BIND_OWN, b);
        break;
    case NMO_NOTE:
        if (a != 0)
            nmo_arena_note(NMO_NOTE_WARNING, "%s", (const char *)a);
        break;
    case NMO_PINNED:
        if (a != 0)
            nmo_arena_note(NMO_NOTE_PINNED, "%s", (const char *)a);
        break;
    case NMO_HOMES:
    case NMO_FORKED:
    case NMO_LOG_TID: /* in logs only */
        break;
    }
}
