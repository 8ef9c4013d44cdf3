#ifndef NMO_RUN_H
#define NMO_RUN_H

#include "job.h"

/* Carries out run k of job and reports it. */
void nmo_run(const struct nmo_job *job, int k);

#endif
