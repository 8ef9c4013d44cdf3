/* The files that the Go side writes and checks are the contract: every run file
 * of testdata/run is accepted, and every case of testdata/distribution gives
 * the homes that it names. */
#include <dirent.h>

#include "../src/nmo.h"
#include "check.h"
#include "sys_fake.h"

enum { PAGE = 4096, MOST = 1 << 15 };

static char space[1 << 22], text[1 << 20];
static int cases;

static size_t slurp(const char *dir, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    CHECK(n > 0, "%s cannot be read", path);
    if (f)
        fclose(f);
    text[n] = 0;
    return n;
}

static void run_file(const char *dir, const char *name) {
    const char *why;
    size_t n = slurp(dir, name);
    memset(space, 0, sizeof space);
    int line = nmo_run_space(text, n) <= sizeof space ? nmo_run_parse(&nmo_run, text, n, space, &why) : -1;
    CHECK(line == 0, "%s:%d: %s", name, line, why);
    cases++;
}

/* "0*2 -*1" as one node a page, 9 for "-". */
static long expand(const char *runs, int *homes) {
    long pages = 0;
    while (*runs && *runs != '\n') {
        int node = *runs == '-' ? 9 : (int)strtol(runs, (char **)(uintptr_t)&runs, 10);
        runs += *runs == '-';
        long n = strtol(runs + 1, (char **)(uintptr_t)&runs, 10);
        while (n-- > 0 && pages < MOST)
            homes[pages++] = node;
        while (*runs == ' ')
            runs++;
    }
    return pages;
}

/* NODES PAGES | POLICY ARG | MAP | HOMES, through a run file of its own. */
static void distribution(const char *file, char *line) {
    static char run[1 << 17];
    static int want[MOST];
    char *field[4] = {line, "", "", ""};
    for (int i = 1; i < 4; i++) {
        char *bar = strchr(field[i - 1], '|');
        CHECK(bar, "%s: %s", file, line);
        if (!bar)
            return;
        *bar = 0;
        field[i] = bar + 1;
    }
    int nodes = 0;
    long pages = 0;
    sscanf(field[0], "%d %ld", &nodes, &pages);
    int n = sprintf(run, "numaopt-run 1\ncpu 0 0\n");
    for (int i = 0; i < nodes; i++)
        n += sprintf(run + n, "node %d %d\n", i, i);
    n += sprintf(run + n, "module 0 - -\nobject 1 heap -1 0 1 1 %ld %s x\nframe 1 0 0 1 2\n", pages * PAGE, field[1]);
    if (*field[2])
        n += sprintf(run + n, "map 1 %s\n", field[2]);
    fake_reset(nodes);
    memset(space, 0, sizeof space);
    const char *why;
    int bad = nmo_run_parse(&nmo_run, run, (size_t)n, space, &why);
    CHECK(!bad && pages <= MOST, "%s: line %d: %s", line, bad, why);
    if (bad || pages > MOST)
        return;
    nmo_run.page_ranges = 1 << 20;
    nmo_place_block(&nmo_run.objects[0], fake.base, (size_t)pages * PAGE, 0, true);
    fake_touch(fake.base, (size_t)pages * PAGE, 9);
    long named = expand(field[3], want);
    CHECK(named == pages, "%s: %ld homes of %ld pages", line, named, pages);
    for (long i = 0; nmo_run.objects[0].policy != NMO_POLICY_INTERLEAVE && i < pages; i++)
        if (fake.home[i] != want[i]) {
            CHECK(false, "%s %s %s: page %ld is on %d, not %d", field[0], field[1], field[2], i, fake.home[i], want[i]);
            break;
        }
    cases++;
}

static void distributions(const char *dir, const char *name) {
    slurp(dir, name);
    static char lines[sizeof text];
    memcpy(lines, text, sizeof lines);
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"))
        if (*line != '#')
            distribution(name, line);
}

static void each(const char *dir, const char *ending, void (*call)(const char *, const char *)) {
    DIR *d = opendir(dir);
    CHECK(d, "%s is not there", dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ending))
            call(dir, e->d_name);
    if (d)
        closedir(d);
}

int main(void) {
    each("../testdata/run", ".run", run_file);
    each("../testdata/distribution", ".txt", distributions);
    CHECK(cases > 50, "only %d cases", cases);
    CHECK_END;
}
