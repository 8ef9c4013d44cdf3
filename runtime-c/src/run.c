/* run.c: the run file to static tables. Line-based, `numaopt-run 1` first; the
 * writer is internal/launch. Two passes: count, so that the tables can be cut
 * from one piece of memory; then parse, in place. */
#include "nmo.h"

struct nmo_run nmo_run;

/* ---- words of one line ---- */

struct line {
    char *at; /* NUL-terminated rest */
    bool bad;
};

static char *word(struct line *line) {
    char *start = line->at;
    if (!*start) {
        line->bad = true;
        return start;
    }
    while (*line->at && *line->at != ' ')
        line->at++;
    if (*line->at)
        *line->at++ = 0;
    return start;
}

static uint64_t digits(struct line *line, const char *s, unsigned base) {
    uint64_t n = 0;
    if (!*s)
        line->bad = true;
    for (; *s; s++) {
        unsigned d = *s >= '0' && *s <= '9' ? (unsigned)(*s - '0') : *s >= 'a' && *s <= 'f' ? (unsigned)(*s - 'a') + 10 : 99;
        if (d >= base || __builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, d, &n))
            line->bad = true;
    }
    return n;
}

static uint64_t number(struct line *line) {
    const char *s = word(line);
    if (s[0] == '0' && s[1] == 'x')
        return digits(line, s + 2, 16);
    return digits(line, s, 10);
}

/* A number below limit. */
static int small_number(struct line *line, int limit) {
    uint64_t n = number(line);
    if (n >= (uint64_t)limit) {
        line->bad = true;
        return 0;
    }
    return (int)n;
}

static int choice(struct line *line, const char *const *names) {
    const char *s = word(line);
    for (int i = 0; names[i]; i++)
        if (nmo_mem_equal(s, names[i]))
            return i;
    line->bad = true;
    return 0;
}

static bool begins(const char *s, const char *end, const char *with) {
    while (*with)
        if (s == end || *s++ != *with++)
            return false;
    return true;
}

/* ---- first pass ---- */

struct counts {
    size_t cpus, only, modules, objects, frames, runs, loops, read, plain;
};

static struct counts count(const char *text, size_t bytes) {
    struct counts c = {0};
    const char *end = text + bytes;
    for (const char *s = text; s < end;) {
        c.cpus += begins(s, end, "cpu ");
        c.only += begins(s, end, "only ");
        c.modules += begins(s, end, "module ");
        c.objects += begins(s, end, "object ");
        c.frames += begins(s, end, "frame ");
        c.loops += begins(s, end, "loop ");
        c.read += begins(s, end, "read ");
        c.plain += begins(s, end, "plain ");
        bool map = begins(s, end, "map ") || begins(s, end, "touched ") || begins(s, end, "otherwise ");
        for (; s < end && *s != '\n'; s++)
            c.runs += map && *s == '*';
        s++;
    }
    return c;
}

size_t nmo_run_space(const char *text, size_t bytes) {
    struct counts c = count(text, bytes);
    return 64 + c.cpus * sizeof(struct nmo_run_cpu) + c.only * sizeof(struct nmo_only) +
           c.modules * sizeof(struct nmo_module) + c.objects * sizeof(struct nmo_object) +
           c.frames * sizeof(struct nmo_frame) + c.runs * sizeof(struct nmo_runs) + c.loops * sizeof(struct nmo_loop) +
           c.read * sizeof(struct nmo_module) + c.plain * sizeof(char *);
}

/* ---- second pass ---- */

struct parse {
    struct nmo_run *run;
    struct nmo_frame *frame; /* next free */
    struct nmo_runs *runs;
    bool map_closed;
};

static const char *parse_cpu(struct parse *p, struct line *line) {
    struct nmo_run_cpu *cpu = &p->run->cpus[p->run->ncpus];
    cpu->id = small_number(line, NMO_MAX_CPUS);
    cpu->node = small_number(line, NMO_MAX_NODES);
    p->run->ncpus++;
    return NULL;
}

static const char *parse_node(struct parse *p, struct line *line) {
    int ordinal = small_number(line, NMO_MAX_NODES);
    int os = small_number(line, 1024);
    if (line->bad)
        return NULL;
    if (ordinal != p->run->nnodes)
        return "nodes are not in the order of their ordinals";
    p->run->os_node[ordinal] = os;
    int first = 0;
    while (p->run->os_node[first] != os)
        first++;
    p->run->behind[ordinal] = ordinal - first;
    p->run->nnodes++;
    return NULL;
}

static const char *parse_only(struct parse *p, struct line *line) {
    struct nmo_only *only = &p->run->only[p->run->nonly++];
    only->offset = number(line);
    only->path = line->at;
    return NULL;
}

static const char *parse_file(struct nmo_module *m, struct line *line) {
    m->build_id = word(line);
    if (nmo_mem_equal(m->build_id, "-"))
        m->build_id = "";
    m->path = line->at;
    return NULL;
}

static const char *parse_module(struct parse *p, struct line *line) {
    if (small_number(line, 65535) != p->run->nmodules)
        return "modules are not numbered from 0";
    return parse_file(&p->run->modules[p->run->nmodules++], line);
}

static int rank(struct line *line) {
    if (line->at[0] == '-' && line->at[1] == '1' && line->at[2] == ' ') {
        word(line);
        return -1;
    }
    return small_number(line, NMO_MAX_RANKS);
}

static const char *parse_object(struct parse *p, struct line *line) {
    static const char *const kinds[] = {"heap", "mapping", "global", NULL};
    static const char *const policies[] = {"bind", "interleave", "block-cyclic", "x-wise", "pages", NULL};
    struct nmo_object *o = &p->run->objects[p->run->nobjects++];
    o->id = (uint32_t)number(line);
    o->kind = (enum nmo_kind)choice(line, kinds);
    o->rank = rank(line);
    o->first = number(line);
    o->count = number(line);
    o->min_bytes = number(line);
    o->max_bytes = number(line);
    o->policy = (enum nmo_policy)choice(line, policies);
    if (o->policy == NMO_POLICY_XWISE || o->policy == NMO_POLICY_PAGES)
        word(line);
    else if (o->policy == NMO_POLICY_INTERLEAVE)
        o->arg = digits(line, word(line), 16);
    else
        o->arg = number(line);
    o->name = line->at;
    o->module = -1;
    return NULL;
}

static struct nmo_object *object_of(struct parse *p, struct line *line) {
    uint64_t id = number(line);
    for (int i = p->run->nobjects - 1; i >= 0; i--)
        if (p->run->objects[i].id == id)
            return &p->run->objects[i];
    line->bad = true;
    return NULL;
}

static const char *parse_frame(struct parse *p, struct line *line) {
    struct nmo_object *o = object_of(p, line);
    if (!o)
        return "frame of an object that was not named";
    if (o->nframes && o->frames + o->nframes != p->frame)
        return "frames of an object are not together";
    struct nmo_frame *f = p->frame;
    f->k = (uint16_t)small_number(line, NMO_MAX_FRAMES);
    f->module = (uint16_t)small_number(line, 65535);
    f->lo = number(line);
    f->hi = number(line);
    if (!line->bad && f->module >= p->run->nmodules)
        return "frame in a module that was not named";
    if (!o->nframes)
        o->frames = f;
    o->nframes++;
    p->frame++;
    if (f->k >= o->depth)
        o->depth = f->k + 1u;
    return NULL;
}

static const char *parse_symbol(struct parse *p, struct line *line) {
    struct nmo_object *o = object_of(p, line);
    if (!o)
        return "symbol of an object that was not named";
    o->module = small_number(line, 65535);
    o->vaddr = number(line);
    o->bytes = number(line);
    if (!line->bad && o->module >= p->run->nmodules)
        return "symbol in a module that was not named";
    return NULL;
}

/* "0*12 1*13 -*4"; lines of one object follow each other. */
enum which { MAP, TOUCHED, OTHERWISE };

static const char *parse_runs(struct parse *p, struct line *line, enum which which) {
    struct nmo_object *o = object_of(p, line);
    if (!o)
        return "map of an object that was not named";
    struct nmo_runs **runs = which == MAP ? &o->map : which == TOUCHED ? &o->touched : &o->other;
    unsigned *nruns = which == MAP ? &o->nmap : which == TOUCHED ? &o->ntouched : &o->nother;
    uint64_t *pages = which == MAP ? &o->map_pages : which == TOUCHED ? &o->touched_pages : &o->other_pages;
    if (*nruns && *runs + *nruns != p->runs)
        return "map lines of an object are not together";
    if (!*nruns)
        *runs = p->runs;
    while (*line->at && !line->bad) {
        char *node = word(line), *star = node;
        while (*star && *star != '*')
            star++;
        if (!*star || star == node)
            return "a run is not NODE*COUNT";
        *star = 0;
        struct nmo_runs r = {-1, 0};
        if (!nmo_mem_equal(node, "-"))
            r.node = (int32_t)digits(line, node, 10);
        uint64_t n = digits(line, star + 1, 10);
        if (line->bad || r.node >= NMO_MAX_NODES || n == 0 || n > UINT32_MAX)
            return "a run is not NODE*COUNT";
        r.count = (uint32_t)n;
        *p->runs++ = r;
        (*nruns)++;
        *pages += n;
    }
    return NULL;
}

/* Takes the next number of a list. */
static uint64_t item(struct line *line, char **list) {
    char *at = *list;
    while (**list && **list != ',')
        ++*list;
    if (**list)
        *(*list)++ = 0;
    return digits(line, at, 10);
}

static bool permutes_nodes(const struct nmo_loop *l) {
    return l->schedule == NMO_SCHEDULE_NODES || l->schedule == NMO_SCHEDULE_BLOCKS;
}

/* "2,3,0,1"; of a block-exclusive loop the sweep and the step come first. */
static void parse_nodes(struct nmo_loop *l, struct line *line) {
    char *list = word(line);
    if (l->schedule == NMO_SCHEDULE_BLOCKS) {
        l->sweep = item(line, &list);
        l->step = (unsigned)item(line, &list);
    }
    while (*list && !line->bad) {
        uint64_t n = item(line, &list);
        if (l->nnodes == NMO_MAX_NODES || n >= NMO_MAX_NODES)
            line->bad = true;
        else
            l->nodes[l->nnodes++] = (uint8_t)n;
    }
}

static const char *parse_loop(struct parse *p, struct line *line) {
    static const char *const runtimes[] = {"gomp", "kmp", NULL};
    static const char *const schedules[] = {"inverse", "nodes", "block-exclusive", "affine", NULL};
    struct nmo_loop *l = &p->run->loops[p->run->nloops++];
    l->id = (uint32_t)number(line);
    l->kmp = choice(line, runtimes) == 1;
    l->module = small_number(line, 65535);
    l->offset = number(line);
    l->schedule = (enum nmo_schedule)choice(line, schedules);
    if (permutes_nodes(l))
        parse_nodes(l, line);
    else
        word(line);
    l->name = line->at;
    if (!line->bad && l->module >= p->run->nmodules)
        return "loop in a module that was not named";
    return NULL;
}

static const char *parse_line(struct parse *p, struct line *line) {
    static const char *const names[] = {"mode", "sys", "mark", "page-ranges", "cpu", "node", "pinned", "only", "summary",
                                        "module", "object", "frame", "symbol", "map", "touched", "loop", "page-size", "otherwise", "affine", "read", "plain", "log", NULL};
    static const char *const modes[] = {"track", "apply", "bind", NULL};
    static const char *const systems[] = {"linux", "emulated", NULL};
    switch (choice(line, names)) {
    case 0: p->run->mode = (enum nmo_mode)choice(line, modes); return NULL;
    case 1: p->run->emulated = choice(line, systems) == 1; return NULL;
    case 2: p->run->mark = number(line) != 0; return NULL;
    case 3: p->run->page_ranges = number(line); return NULL;
    case 4: return parse_cpu(p, line);
    case 5: return parse_node(p, line);
    case 6: p->run->pinned = line->at; return NULL;
    case 7: return parse_only(p, line);
    case 8: p->run->summary = line->at; return NULL;
    case 9: return parse_module(p, line);
    case 10: return parse_object(p, line);
    case 11: return parse_frame(p, line);
    case 12: return parse_symbol(p, line);
    case 13: return parse_runs(p, line, MAP);
    case 14: return parse_runs(p, line, TOUCHED);
    case 15: return parse_loop(p, line);
    case 16: p->run->page_size = number(line); return NULL;
    case 17: return parse_runs(p, line, OTHERWISE);
    case 18: p->run->affine = number(line) != 0; return NULL;
    case 19: return parse_file(&p->run->read[p->run->nread++], line);
    case 20: p->run->plain[p->run->nplain++] = word(line); return NULL;
    default: p->run->log = line->at; return NULL;
    }
}

static void cut_tables(struct nmo_run *run, struct counts c, char *space, struct parse *p) {
    space = (char *)(((uintptr_t)space + 7) & ~(uintptr_t)7);
    run->objects = (void *)space, space += c.objects * sizeof(struct nmo_object);
    run->loops = (void *)space, space += c.loops * sizeof(struct nmo_loop);
    run->modules = (void *)space, space += c.modules * sizeof(struct nmo_module);
    run->read = (void *)space, space += c.read * sizeof(struct nmo_module);
    run->plain = (void *)space, space += c.plain * sizeof(char *);
    run->only = (void *)space, space += c.only * sizeof(struct nmo_only);
    p->frame = (void *)space, space += c.frames * sizeof(struct nmo_frame);
    run->cpus = (void *)space, space += c.cpus * sizeof(struct nmo_run_cpu);
    p->runs = (void *)space;
}

/* What must hold of every object before it is used. */
static const char *check_object(const struct nmo_run *run, const struct nmo_object *o) {
    uint64_t all = run->nnodes >= 64 ? UINT64_MAX : (1ull << run->nnodes) - 1;
    if (o->kind == NMO_GLOBAL ? o->module < 0 : !o->nframes)
        return "an object has no frame or symbol line";
    if (o->count == 0 || o->min_bytes > o->max_bytes)
        return "an object has no instance or no size";
    if (o->policy == NMO_POLICY_BIND && o->arg >= (uint64_t)run->nnodes)
        return "an object is bound to a node that was not named";
    if (o->policy == NMO_POLICY_INTERLEAVE && (!o->arg || o->arg & ~all))
        return "an object is interleaved over nodes that were not named";
    if (o->policy == NMO_POLICY_CYCLIC && !o->arg)
        return "a block is empty";
    if (o->policy == NMO_POLICY_PAGES && !o->map_pages)
        return "a page map is empty";
    for (unsigned i = 0; i < o->nmap; i++)
        if (o->map[i].node >= run->nnodes)
            return "a page map has a node that was not named";
    for (unsigned i = 0; i < o->nother; i++)
        if (o->other[i].node >= run->nnodes)
            return "a page map has a node that was not named";
    return NULL;
}

/* The nodes of a loop are all of the run's, each once; with each phase of a sweep
 * they are others. */
static const char *check_loop(const struct nmo_run *run, const struct nmo_loop *l) {
    uint64_t seen = 0;
    for (int i = 0; i < l->nnodes; i++)
        seen |= 1ull << l->nodes[i];
    uint64_t all = run->nnodes >= 64 ? UINT64_MAX : (1ull << run->nnodes) - 1;
    if (permutes_nodes(l) && (l->nnodes != run->nnodes || seen != all))
        return "the nodes of a loop are not those of the machine, each once";
    if (l->schedule == NMO_SCHEDULE_BLOCKS && (l->sweep < (uint64_t)run->nnodes || !l->step || l->step >= (unsigned)run->nnodes))
        return "a loop's sweep is shorter than its phases, or its step is not one from a node to another";
    return NULL;
}

static const char *check(const struct nmo_run *run) {
    if (!run->ncpus)
        return "no cpu line";
    if (!run->nnodes)
        return "no node line";
    if (run->log && (run->mode != NMO_MODE_TRACK || run->emulated))
        return "a log is for mode track on linux";
    if (run->page_size & (run->page_size - 1) || run->page_size > 1u << 30)
        return "the page size is not a power of two up to 1 GiB";
    for (int i = 0; i < run->ncpus; i++)
        if (run->cpus[i].node >= run->nnodes)
            return "a cpu is on a node that was not named";
    for (int i = 0; i < run->nobjects; i++) {
        const char *why = check_object(run, &run->objects[i]);
        if (why)
            return why;
    }
    for (int i = 0; i < run->nloops; i++) {
        const char *why = check_loop(run, &run->loops[i]);
        if (why)
            return why;
    }
    return NULL;
}

int nmo_run_parse(struct nmo_run *run, char *text, size_t bytes, void *space, const char **why) {
    static const char head[] = "numaopt-run 1\n";
    struct parse p = {.run = run};
    *run = (struct nmo_run){.mode = NMO_MODE_BIND, .page_ranges = 16382};
    if (!begins(text, text + bytes, head)) {
        *why = "not a run file of version 1 (made by another numaopt?)";
        return 1;
    }
    if (text[bytes - 1] != '\n') {
        *why = "the file is truncated";
        return 1;
    }
    cut_tables(run, count(text, bytes), space, &p);
    int number_of_line = 1;
    for (char *s = text + sizeof head - 1, *end = text + bytes; s < end;) {
        struct line line = {s, false};
        for (; *s != '\n'; s++)
            if (!*s)
                *s = '?';
        *s++ = 0;
        number_of_line++;
        *why = parse_line(&p, &line);
        if (line.bad && !*why)
            *why = "a word is missing or not understood";
        if (*why)
            return number_of_line;
    }
    *why = check(run);
    return *why ? number_of_line : 0;
}
