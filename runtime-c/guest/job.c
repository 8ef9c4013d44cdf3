#define _GNU_SOURCE
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

static void append(struct nmo_list *list, char *item)
{
    if (list->count + 1 >= NMO_JOB_ITEMS)
        nmo_fatal("more than %d arguments or environment entries", NMO_JOB_ITEMS);
    list->item[list->count++] = item;
    list->item[list->count] = NULL;
}

static struct nmo_list *list_new(void)
{
    return calloc(1, sizeof(struct nmo_list));
}

/* Keys of the run that was begun last; 0 where key is none of them. */
static int run_key(struct nmo_run *run, const char *key, char *value)
{
    if (!run)
        return 0;
    if (!strcmp(key, "exe"))
        run->exe = value;
    else if (!strcmp(key, "arg"))
        append(run->args, value);
    else if (!strcmp(key, "env"))
        append(run->env, value);
    else if (!strcmp(key, "interleave"))
        run->interleave = atoi(value);
    else if (!strcmp(key, "mark-exec"))
        run->mark_exec = atoi(value);
    else if (!strcmp(key, "keep"))
        run->keep = atoi(value);
    else if (!strcmp(key, "summary"))
        run->summary = value;
    else if (!strcmp(key, "selftest"))
        run->selftest = value;
    else
        return 0;
    return 1;
}

static int job_key(struct nmo_job *job, const char *key, char *value)
{
    struct nmo_limit *limit = &job->limit[job->limits];
    if (!strcmp(key, "nodes"))
        job->nodes = atoi(value);
    else if (!strcmp(key, "cpus"))
        job->cpus = atoi(value);
    else if (!strcmp(key, "uid"))
        job->uid = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(key, "gid"))
        job->gid = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(key, "group") && job->groups < NMO_JOB_GROUPS)
        job->group[job->groups++] = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(key, "umask"))
        job->umask = (unsigned)strtoul(value, NULL, 8);
    else if (!strcmp(key, "host"))
        job->host = value;
    else if (!strcmp(key, "cwd"))
        job->cwd = value;
    else if (!strcmp(key, "dir"))
        job->dir = value;
    else if (!strcmp(key, "stdin"))
        job->input = value;
    else if (!strcmp(key, "rlimit") && job->limits < NMO_JOB_LIMITS) {
        if (sscanf(value, "%d %llu %llu", &limit->resource, &limit->soft, &limit->hard) == 3)
            job->limits++;
    } else
        return 0;
    return 1;
}

/* Reads a job: "key=value" strings, each ended by a NUL. Strings stay in text,
 * which the job keeps. */
void nmo_job_read(struct nmo_job *job, char *text, size_t bytes)
{
    struct nmo_run *run = NULL;
    memset(job, 0, sizeof *job);
    for (char *at = text, *next; at < text + bytes; at = next) {
        next = at + strlen(at) + 1;
        char *value = strchr(at, '=');
        if (!value)
            nmo_fatal("the job has a line without '=': %s", at);
        *value++ = 0;
        if (!strcmp(at, "run")) {
            if (job->runs == NMO_JOB_RUNS)
                nmo_fatal("more than %d runs", NMO_JOB_RUNS);
            run = &job->run[job->runs++];
            run->name = value;
            run->args = list_new();
            run->env = list_new();
        } else if (!run_key(run, at, value) && !job_key(job, at, value))
            nmo_fatal("the job has an unknown key: %s", at);
    }
}
