/* The run file is read as it was written; a broken one is refused with the
 * number of its line, and no mutation of a good one does harm. */
#include <unistd.h>

#include "../src/nmo.h"
#include "check.h"

static const char good[] = "numaopt-run 1\n"
                           "mode apply\n"
                           "sys linux\n"
                           "mark 1\n"
                           "page-ranges 100\n"
                           "cpu 0 0\ncpu 5 1\n"
                           "node 0 0\nnode 1 4\n"
                           "only 4096 /bin/a b\n"
                           "summary /tmp/with space\n"
                           "module 0 - /proc/self/exe\n"
                           "module 1 abcdef /lib/libc.so.6\n"
                           "object 3 heap 0 2 4 4096 1048576 x-wise - u in bt.c\n"
                           "frame 3 0 0 100 101\nframe 3 0 0 200 201\nframe 3 1 1 300 0x12d\n"
                           "touched 3 1*10 -*2\n"
                           "object 4 global -1 0 1 65536 65536 pages - v\n"
                           "symbol 4 0 8192 65536\n"
                           "map 4 0*4 1*4\nmap 4 -*8\n"
                           "object 5 mapping -1 0 1 4096 8192 interleave 3 m\n"
                           "frame 5 0 0 1 2\n"
                           "loop 7 kmp 1 0x1234 inverse - lu.c:88 (blts)\n"
                           "loop 8 gomp 0 99 nodes 1,0 ft\n"
                           "loop 9 gomp 0 100 block-exclusive 62,1,1,0 bt.c:3\n";

static int parse(const char *text, size_t bytes, const char **why) {
    static char copy[1 << 16], space[1 << 18];
    memcpy(copy, text, bytes);
    CHECK(nmo_run_space(copy, bytes) <= sizeof space, "space");
    memset(space, 0, sizeof space);
    return nmo_run_parse(&nmo_run, copy, bytes, space, why);
}

static void check_good(void) {
    const char *why;
    int line = parse(good, sizeof good - 1, &why);
    CHECK(line == 0, "line %d: %s", line, why);
    CHECK(nmo_run.mode == NMO_MODE_APPLY && !nmo_run.emulated && nmo_run.mark && nmo_run.page_ranges == 100);
    CHECK(nmo_run.ncpus == 2 && nmo_run.cpus[1].id == 5 && nmo_run.cpus[1].node == 1);
    CHECK(nmo_run.nnodes == 2 && nmo_run.os_node[1] == 4);
    CHECK(!strcmp(nmo_run.summary, "/tmp/with space"), "%s", nmo_run.summary);
    CHECK(nmo_run.nonly == 1 && !strcmp(nmo_run.only[0].path, "/bin/a b"));
    CHECK(nmo_run.nmodules == 2 && !*nmo_run.modules[0].build_id && !strcmp(nmo_run.modules[1].build_id, "abcdef"));
    const struct nmo_object *o = nmo_run.objects;
    CHECK(nmo_run.nobjects == 3 && o[0].id == 3 && o[0].depth == 2 && o[0].nframes == 3 && o[0].frames[2].hi == 301);
    CHECK(o[0].rank == 0 && o[0].first == 2 && o[0].count == 4 && !strcmp(o[0].name, "u in bt.c"));
    CHECK(o[0].touched_pages == 12 && o[0].ntouched == 2);
    CHECK(o[1].kind == NMO_GLOBAL && o[1].rank == -1 && o[1].nmap == 3 && o[1].map_pages == 16 && o[1].map[2].node == -1);
    CHECK(o[2].policy == NMO_POLICY_INTERLEAVE && o[2].arg == 3);
    const struct nmo_loop *l = nmo_run.loops;
    CHECK(nmo_run.nloops == 3 && l[0].id == 7 && l[0].kmp && l[0].module == 1 && l[0].offset == 0x1234 && !strcmp(l[0].name, "lu.c:88 (blts)"));
    CHECK(l[0].schedule == NMO_SCHEDULE_INVERSE && l[1].schedule == NMO_SCHEDULE_NODES && !l[1].kmp && l[1].nnodes == 2 && l[1].nodes[0] == 1 && !l[1].sweep);
    CHECK(l[2].schedule == NMO_SCHEDULE_BLOCKS && l[2].sweep == 62 && l[2].step == 1 && l[2].nnodes == 2 && l[2].nodes[0] == 1 && !l[2].nodes[1]);
}

/* A node without memory has the number of the one that its pages go to. */
static void check_behind(void) {
    static const char text[] = "numaopt-run 1\nmode bind\nsys linux\nmark 0\npage-ranges 100\ncpu 0 2\n"
                               "node 0 4\nnode 1 7\nnode 2 4\n";
    const char *why;
    int line = parse(text, sizeof text - 1, &why);
    CHECK(line == 0, "line %d: %s", line, why);
    CHECK(!nmo_run.behind[0] && !nmo_run.behind[1] && nmo_run.behind[2] == 2, "%d", nmo_run.behind[2]);
}

static void check_log(void) {
    static const char text[] = "numaopt-run 1\nmode track\nsys linux\ncpu 0 0\nnode 0 0\nlog /tmp/a log\n";
    const char *why;
    int line = parse(text, sizeof text - 1, &why);
    CHECK(line == 0, "line %d: %s", line, why);
    CHECK(!strcmp(nmo_run.log, "/tmp/a log"), "%s", nmo_run.log);
}

static const struct {
    const char *name, *text;
    int line;
} bad[] = {
    {"a log of a plan", "numaopt-run 1\nmode apply\nsys linux\ncpu 0 0\nnode 0 0\nlog /tmp/log\n", 6},
    {"a log and an emulator", "numaopt-run 1\nmode track\nsys emulated\ncpu 0 0\nnode 0 0\nlog /tmp/log\n", 6},
    {"another version", "numaopt-run 2\n", 1},
    {"another file", "\x7f" "ELF", 1},
    {"truncated", "numaopt-run 1\ncpu 0 0\nnode 0", 1},
    {"unknown word", "numaopt-run 1\nfrobnicate\n", 2},
    {"no cpu", "numaopt-run 1\nnode 0 0\n", 2},
    {"cpu on no node", "numaopt-run 1\ncpu 0 1\nnode 0 0\n", 3},
    {"node out of order", "numaopt-run 1\nnode 1 0\n", 2},
    {"word missing", "numaopt-run 1\ncpu 0\n", 2},
    {"number too large", "numaopt-run 1\npage-ranges 99999999999999999999\n", 2},
    {"frame of no object", "numaopt-run 1\nmodule 0 - -\nframe 1 0 0 1 2\n", 3},
    {"frame in no module", "numaopt-run 1\nobject 1 heap -1 0 1 1 2 bind 0 x\nframe 1 0 0 1 2\n", 3},
    {"bound nowhere", "numaopt-run 1\ncpu 0 0\nnode 0 0\nmodule 0 - -\nobject 1 heap -1 0 1 1 2 bind 7 x\nframe 1 0 0 1 2\n", 6},
    {"loop in no module", "numaopt-run 1\nloop 1 kmp 0 16 inverse - x\n", 2},
    {"loop of no runtime", "numaopt-run 1\nmodule 0 - -\nloop 1 libomp 0 16 inverse - x\n", 3},
    {"loop's nodes", "numaopt-run 1\ncpu 0 0\nnode 0 0\nnode 1 1\nmodule 0 - -\nloop 1 kmp 0 16 nodes 1,1 x\n", 6},
    {"a sweep below its phases", "numaopt-run 1\ncpu 0 0\nnode 0 0\nnode 1 1\nmodule 0 - -\nloop 1 kmp 0 16 block-exclusive 1,1,0,1 x\n", 6},
    {"a step of all nodes", "numaopt-run 1\ncpu 0 0\nnode 0 0\nnode 1 1\nmodule 0 - -\nloop 1 kmp 0 16 block-exclusive 9,2,0,1 x\n", 6},
    {"no nodes of phases", "numaopt-run 1\ncpu 0 0\nnode 0 0\nmodule 0 - -\nloop 1 kmp 0 16 block-exclusive 9 x\n", 5},
    {"a loop's node", "numaopt-run 1\nmodule 0 - -\nloop 1 kmp 0 16 nodes 1,,0 x\n", 3},
    {"empty map", "numaopt-run 1\ncpu 0 0\nnode 0 0\nmodule 0 - -\nobject 1 global -1 0 1 1 2 pages - x\nsymbol 1 0 1 2\n", 6},
    {"run of nothing", "numaopt-run 1\nobject 1 heap -1 0 1 1 2 pages - x\nmap 1 0*0\n", 3},
    {"frame number", "numaopt-run 1\nmodule 0 - -\nobject 1 heap -1 0 1 1 2 bind 0 x\nframe 1 64 0 1 2\n", 4},
};

static uint64_t seed = 1;
static unsigned next(unsigned below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

/* Whatever is accepted satisfies the parser's own promises. */
static void check_promises(void) {
    for (int i = 0; i < nmo_run.nobjects; i++) {
        const struct nmo_object *o = &nmo_run.objects[i];
        for (unsigned j = 0; j < o->nframes; j++)
            CHECK(o->frames[j].module < nmo_run.nmodules && o->frames[j].k < NMO_MAX_FRAMES);
        for (unsigned j = 0; j < o->nmap; j++)
            CHECK(o->map[j].node < nmo_run.nnodes && o->map[j].count > 0);
        CHECK(strlen(o->name) < 1 << 16);
    }
}

static void mutate(int times) {
    char text[2 * sizeof good];
    for (int t = 0; t < times; t++) {
        size_t n = sizeof good - 1;
        memcpy(text, good, n);
        for (unsigned k = next(4) + 1; k && n > 1; k--) {
            unsigned at = next((unsigned)n);
            switch (next(4)) {
            case 0: text[at] = (char)next(256); break;
            case 1: text[at] = "0123456789-* \n"[next(14)]; break;
            case 2: memmove(text + at, text + at + 1, --n - at); break;
            default: n = at + 1; text[at] = '\n'; break;
            }
        }
        const char *why = NULL;
        if (!parse(text, n, &why))
            check_promises();
        else
            CHECK(why && *why, "refused without a reason");
    }
}

int main(void) {
    check_good();
    check_behind();
    check_log();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *why = "";
        int line = parse(bad[i].text, strlen(bad[i].text), &why);
        CHECK(line == bad[i].line, "%s: line %d, not %d: %s", bad[i].name, line, bad[i].line, why ? why : "");
    }
    mutate(20000);
    CHECK_END;
}
