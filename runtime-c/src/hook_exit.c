/* hook_exit.c: the ends of a process image that run no destructors. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nmo.h"
#include "sys.h"

__attribute__((noreturn)) static void end(int status) {
    for (;;)
        nmo_sys_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

NMO_EXPORT void _exit(int status) {
    nmo_stats_finish();
    end(status);
}

NMO_EXPORT void _Exit(int status) {
    nmo_stats_finish();
    end(status);
}

/* quick_exit runs the program's own handlers first. */
NMO_EXPORT void quick_exit(int status) {
    static void (*real)(int);
    if (!real)
        real = (void (*)(int))nmo_real_find("quick_exit", 0);
    nmo_stats_finish();
    real(status);
    end(status);
}
