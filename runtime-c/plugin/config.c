/* config.c: what `numaopt profile` tells the plugin: a text file named by the
 * plugin argument conf=PATH, first line `numaopt-emulate 1`. */
#include <stdio.h>

#include "emulate.h"

struct config nmo_config;

static int line_cpu(const char *rest)
{
    struct config *c = &nmo_config;
    struct cpu_line *l = &c->line[c->lines];
    if (c->lines == NMO_CACHE_MAX_CPUS || sscanf(rest, "%u %u", &l->cpu, &l->node) != 2 ||
        l->cpu >= NMO_CACHE_MAX_CPUS || l->node >= NMO_CACHE_MAX_NODES)
        return -1;
    if (l->cpu >= c->cpus)
        c->cpus = l->cpu + 1;
    if (l->node >= c->nodes)
        c->nodes = l->node + 1;
    c->lines++;
    return 0;
}

static int copy(char *to, size_t room, const char *from)
{
    if (strlen(from) >= room)
        return -1;
    strcpy(to, from);
    return 0;
}

static int line(char *text)
{
    struct config *c = &nmo_config;
    char *rest = strchr(text, ' ');
    if (rest == NULL)
        return -1;
    *rest++ = 0;
    if (!strcmp(text, "cpu"))
        return line_cpu(rest);
    if (!strcmp(text, "nodes"))
        return sscanf(rest, "%u", &c->nodes) == 1 && c->nodes <= NMO_CACHE_MAX_NODES ? 0 : -1;
    if (!strcmp(text, "period"))
        return sscanf(rest, "%lu", &c->period) == 1 && c->period > 0 && c->period < UINT32_MAX ? 0 : -1;
    if (!strcmp(text, "l1"))
        return nmo_cache_parse(rest, &c->l1);
    if (!strcmp(text, "l2"))
        return nmo_cache_parse(rest, &c->l2);
    if (!strcmp(text, "llc"))
        return nmo_cache_parse(rest, &c->llc);
    if (!strcmp(text, "socket"))
        return copy(c->socket, sizeof c->socket, rest);
    if (!strcmp(text, "qemu"))
        return copy(c->qemu, sizeof c->qemu, rest);
    if (!strcmp(text, "preload"))
        return copy(c->preload, sizeof c->preload, rest);
    if (!strcmp(text, "run"))
        return copy(c->run, sizeof c->run, rest);
    if (!strcmp(text, "arg")) {
        if (c->nargs == sizeof c->args / sizeof c->args[0])
            return -1;
        c->args[c->nargs++] = strdup(rest);
        return 0;
    }
    return 0; /* a later version's */
}

/* Reads the file. Returns 0, or -1 after a message. */
int nmo_config_read(const char *path)
{
    FILE *f = fopen(path, "re");
    char text[8192];
    int n = 0;
    nmo_config.period = 1;
    if (f == NULL || fgets(text, sizeof text, f) == NULL || strcmp(text, "numaopt-emulate 1\n") != 0) {
        fprintf(stderr, "numaopt: emulate.so: %s: not a numaopt-emulate 1 file\n", path);
        if (f != NULL)
            fclose(f);
        return -1;
    }
    for (n = 2; fgets(text, sizeof text, f) != NULL; n++) {
        text[strcspn(text, "\n")] = 0;
        if (line(text) != 0) {
            fprintf(stderr, "numaopt: emulate.so: %s:%d: not understood\n", path, n);
            fclose(f);
            return -1;
        }
    }
    fclose(f);
    if (nmo_config.lines == 0 || nmo_config.l1.ways == 0 || nmo_config.l2.ways == 0 || nmo_config.llc.ways == 0) {
        fprintf(stderr, "numaopt: emulate.so: %s: no cpu or cache line\n", path);
        return -1;
    }
    return 0;
}
