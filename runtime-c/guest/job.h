/* job.h: what the host wants the guest to run. internal/lab/job.go writes it. */
#ifndef NMO_JOB_H
#define NMO_JOB_H

#include <stddef.h>

#define NMO_JOB_ITEMS 65536 /* arguments or environment entries of a run */
#define NMO_JOB_RUNS 16
#define NMO_JOB_GROUPS 256
#define NMO_JOB_LIMITS 16

struct nmo_list {
    int count;
    char *item[NMO_JOB_ITEMS]; /* NULL behind the last */
};

struct nmo_run {
    const char *name;
    const char *exe; /* absolute path */
    struct nmo_list *args, *env;
    int interleave;       /* MPOL_INTERLEAVE over all nodes, as numactl -i all */
    int mark_exec;        /* the program cannot say when it starts (static): exec is its start */
    int keep;             /* send back the files it changed */
    const char *summary;  /* the runtime's summary file, or NULL */
    const char *selftest; /* instead of a program: a name of selftest.c */
};

struct nmo_limit {
    int resource;
    unsigned long long soft, hard;
};

struct nmo_job {
    int nodes, cpus; /* cpus per node */
    unsigned uid, gid, umask;
    int groups;
    unsigned group[NMO_JOB_GROUPS];
    const char *host, *cwd;
    const char *dir;   /* numaopt's own directory on the host, seen at the same path */
    const char *input; /* the program's stdin */
    int limits;
    struct nmo_limit limit[NMO_JOB_LIMITS];
    int runs;
    struct nmo_run run[NMO_JOB_RUNS];
};

void nmo_job_read(struct nmo_job *job, char *text, size_t bytes);

#endif
