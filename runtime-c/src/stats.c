/* stats.c: what was done, read back from the kernel, once at the end. */
#include "nmo.h"
#include "sys.h"

#include "../plugin/wire.h"

static int finished;
static bool forked;

static void end_block(const struct nmo_live *live) {
    if (live->object)
        nmo_place_end_part(&nmo_run.objects[live->object - 1], live, live->addr, live->bytes, false);
}

static void end_globals(void) {
    for (int i = 0; i < nmo_run.nobjects; i++) {
        struct nmo_object *o = &nmo_run.objects[i];
        if (o->kind == NMO_GLOBAL && o->placed == nmo_generation)
            nmo_place_end(o, nmo_run.modules[o->module].base + o->vaddr, o->bytes, 0, o->ranges, false);
    }
}

/* ---- text ---- */

static void add_percent(struct nmo_text *text, uint64_t part, uint64_t whole) {
    uint64_t tenths = whole ? (part * 1000 + whole / 2) / whole : 0;
    nmo_text_number(text, tenths / 10);
    nmo_text_add(text, ".");
    nmo_text_number(text, tenths % 10);
    nmo_text_add(text, " %");
}

static void say_object(const struct nmo_object *o) {
    NMO_TEXT(text, 500);
    nmo_text_add(&text, o->name);
    nmo_text_add(&text, ": ");
    if (o->touched_seen == 0) {
        nmo_text_add(&text, "placed, none of its pages seen touched");
    } else {
        nmo_text_number(&text, o->on_plan);
        nmo_text_add(&text, " of ");
        nmo_text_number(&text, o->touched_seen);
        nmo_text_add(&text, " touched pages on plan (");
        add_percent(&text, o->on_plan, o->touched_seen);
        nmo_text_add(&text, ")");
    }
    nmo_say(nmo_text_end(&text));
}

static bool ran(const struct nmo_loop *l) { return l->permuted + l->left > 0; }

static void say_loop(const struct nmo_loop *l) {
    NMO_TEXT(text, 500);
    nmo_text_add(&text, l->name);
    nmo_text_add(&text, ": ");
    nmo_text_number(&text, l->permuted);
    nmo_text_add(&text, " of ");
    nmo_text_number(&text, l->permuted + l->left);
    nmo_text_add(&text, " instances scheduled as planned");
    nmo_say(nmo_text_end(&text));
}

static void say_warning(int i) {
    NMO_TEXT(text, 500);
    nmo_text_add(&text, nmo_warn_text(i));
    if (nmo_warn_times(i) > 1) {
        nmo_text_add(&text, " (");
        nmo_text_number(&text, nmo_warn_times(i));
        nmo_text_add(&text, " times)");
    }
    nmo_say(nmo_text_end(&text));
}

static void say(void) {
    for (int i = 0; i < nmo_run.nobjects; i++)
        if (nmo_run.objects[i].instances)
            say_object(&nmo_run.objects[i]);
    for (int i = 0; i < nmo_run.nloops; i++)
        if (ran(&nmo_run.loops[i]))
            say_loop(&nmo_run.loops[i]);
    for (int i = 0; i < nmo_warn_count(); i++)
        say_warning(i);
}

/* ---- JSON ---- */

static void add_field(struct nmo_text *text, const char *name, uint64_t n) {
    nmo_text_add(text, ",\"");
    nmo_text_add(text, name);
    nmo_text_add(text, "\":");
    nmo_text_number(text, n);
}

/* Begins what is told of an object or a loop of the plan. */
static void add_named(struct nmo_text *text, uint32_t id, const char *name) {
    nmo_text_add(text, "{\"id\":");
    nmo_text_number(text, id);
    nmo_text_add(text, ",\"name\":");
    nmo_text_json(text, name);
}

static void add_object(struct nmo_text *text, const struct nmo_object *o) {
    add_named(text, o->id, o->name);
    add_field(text, "instances", o->instances);
    add_field(text, "pages", o->pages);
    add_field(text, "touched", o->touched_seen);
    add_field(text, "on_plan", o->on_plan);
    add_field(text, "moved", o->moved);
    add_field(text, "recycled", o->recycled);
    nmo_text_add(text, "}");
}

static void add_loop(struct nmo_text *text, const struct nmo_loop *l) {
    add_named(text, l->id, l->name);
    add_field(text, "permuted", l->permuted);
    add_field(text, "left", l->left);
    nmo_text_add(text, "}");
}

extern char *program_invocation_name;

static void add_process(struct nmo_text *text) {
    static const char *const modes[] = {"track", "apply", "bind"};
    nmo_text_add(text, "{\"pid\":");
    nmo_text_number(text, (uint64_t)nmo_sys_pid());
    nmo_text_add(text, ",\"program\":");
    nmo_text_json(text, program_invocation_name ? program_invocation_name : "");
    nmo_text_add(text, ",\"mode\":");
    nmo_text_json(text, modes[nmo_run.mode]);
    nmo_text_add(text, ",\"objects\":[");
    for (int i = 0; i < nmo_run.nobjects; i++) {
        if (i)
            nmo_text_add(text, ",");
        add_object(text, &nmo_run.objects[i]);
    }
    nmo_text_add(text, "],\"loops\":[");
    for (int i = 0; i < nmo_run.nloops; i++) {
        if (i)
            nmo_text_add(text, ",");
        add_loop(text, &nmo_run.loops[i]);
    }
    nmo_text_add(text, "]");
    add_field(text, "threads", (uint64_t)nmo_thread_threads());
    nmo_text_add(text, ",\"warnings\":[");
    for (int i = 0; i < nmo_warn_count(); i++) {
        if (i)
            nmo_text_add(text, ",");
        nmo_text_json(text, nmo_warn_text(i));
    }
    nmo_text_add(text, "]");
    add_field(text, "placed_ranges", nmo_place_ranges);
    nmo_text_add(text, "}\n");
}

static void write_summary(void) {
    size_t bytes = 32768 + ((size_t)nmo_run.nobjects + (size_t)nmo_run.nloops) * 4096;
    struct nmo_text text = {0, bytes, nmo_sys_map(bytes)};
    if (!text.to)
        return;
    add_process(&text);
    long err = nmo_sys_append(nmo_run.summary, text.to, text.used);
    if (err < 0)
        nmo_say("the summary could not be written; is the disk full?");
    nmo_sys_unmap(text.to, bytes);
}

/* Whether every file that names the object is in this process. */
static bool nameable(const struct nmo_object *o) {
    if (o->kind == NMO_GLOBAL)
        return nmo_run.modules[o->module].loaded;
    for (unsigned i = 0; i < o->nframes; i++)
        if (!nmo_run.modules[o->frames[i].module].loaded)
            return false;
    return true;
}

static void add_missing(struct nmo_text *text, int *missing, const char *name) {
    enum { NAMED = 4 };
    if (*missing == NAMED)
        nmo_text_add(text, ", and others");
    if ((*missing)++ >= NAMED)
        return;
    nmo_text_add(text, *missing > 1 ? ", " : "");
    nmo_text_add(text, name);
}

/* Names what the plan has and this run of the program never met, of files that are in
 * this process, or that are not. */
static void warn_missing(bool here, const char *kind) {
    NMO_TEXT(text, 300);
    int missing = 0;
    for (int i = 0; i < nmo_run.nobjects; i++)
        if (!nmo_run.objects[i].instances && nameable(&nmo_run.objects[i]) == here)
            add_missing(&text, &missing, nmo_run.objects[i].name);
    for (int i = 0; i < nmo_run.nloops; i++)
        if (!ran(&nmo_run.loops[i]) && nmo_run.modules[nmo_run.loops[i].module].loaded == here)
            add_missing(&text, &missing, nmo_run.loops[i].name);
    if (missing)
        nmo_warn(kind, nmo_text_end(&text));
}

/* Whether something of the plan could be met in this process: else it may be a wrapper,
 * which has nothing to say of the program that it starts. */
static bool concerned(void) {
    for (int i = 0; i < nmo_run.nobjects; i++)
        if (nameable(&nmo_run.objects[i]))
            return true;
    for (int i = 0; i < nmo_run.nloops; i++)
        if (nmo_run.modules[nmo_run.loops[i].module].loaded)
            return true;
    return nmo_module_other;
}

static bool nothing_to_say(void) {
    for (int i = 0; i < nmo_run.nobjects; i++)
        if (nmo_run.objects[i].instances)
            return false;
    for (int i = 0; i < nmo_run.nloops; i++)
        if (ran(&nmo_run.loops[i]))
            return false;
    return !nmo_warn_count();
}

bool nmo_stats_finish(void) {
    if (nmo_state != NMO_READY || nmo_sys_pid() != nmo_pid || __atomic_exchange_n(&finished, 1, __ATOMIC_ACQ_REL))
        return false;
    nmo_mark(NMO_MARK_PROGRAM_END);
    nmo_self.quiet = true;
    nmo_homes_last();
    for (int i = 0; i < nmo_run.nobjects; i++) {
        struct nmo_object *o = &nmo_run.objects[i];
        o->touched_before = o->touched_seen, o->on_plan_before = o->on_plan;
    }
    for (int i = 0; i < NMO_MAX_RANKS; i++)
        if (nmo_ranks[i].used && nmo_ranks[i].pinned_by)
            nmo_view_report(i);
    if (nmo_run.nobjects) {
        nmo_live_each(end_block);
        end_globals();
    }
    if (!forked && concerned()) {
        warn_missing(true, "in the plan, but not met in this run of the program");
        warn_missing(false, "in the plan, but of a file that this program did not load, or not in that build");
    }
    if (forked && nothing_to_say())
        ;
    else if (nmo_run.summary)
        write_summary();
    else if (!nmo_track)
        say();
    nmo_self.quiet = false;
    return true;
}

/* What is live was counted for an end that did not come. */
void nmo_stats_resume(void) {
    for (int i = 0; i < nmo_run.nobjects; i++) {
        struct nmo_object *o = &nmo_run.objects[i];
        o->touched_seen = o->touched_before, o->on_plan = o->on_plan_before;
    }
    __atomic_store_n(&finished, 0, __ATOMIC_RELEASE);
    nmo_mark(NMO_MARK_PROGRAM_START);
}

/* A forked child counts for itself. */
void nmo_stats_child(void) {
    finished = 0;
    forked = true;
    nmo_warn_child();
    for (int i = 0; i < nmo_run.nobjects; i++) {
        struct nmo_object *o = &nmo_run.objects[i];
        o->instances = o->pages = o->touched_seen = o->on_plan = o->moved = o->recycled = 0;
    }
    for (int i = 0; i < nmo_run.nloops; i++)
        nmo_run.loops[i].permuted = nmo_run.loops[i].left = 0;
}
