/* init.c: start-up and its order.
 *
 * Constructors of libraries may run before ours and ask for CPUs (libgomp's does)
 * or start threads, so the first such hook starts us up too.
 *
 * 1. the run file, by raw system calls: nothing of libc is needed or disturbed;
 * 2. the seam and the view, while the thread still has its original mask;
 * 3. the modules: which also places globals, before anyone touches them, and
 *    finds the loops;
 * 4. the main thread's rank and CPU;
 * 5. the hooks' thresholds: only now does malloc look;
 * 6. the lab's mark last, so that our own start-up is not counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "../plugin/wire.h"
#include "nmo.h"
#include "sys.h"

enum nmo_state nmo_state = NMO_BOOT;
const struct nmo_sys *nmo_sys = &nmo_sys_linux;
int nmo_pid;
unsigned nmo_generation = 1;

static void before_fork(void) {
    nmo_module_before_fork();
    nmo_object_before_fork();
    nmo_stack_before_fork();
    nmo_thread_before_fork();
}

static void after_fork(void) {
    nmo_thread_after_fork();
    nmo_stack_after_fork();
    nmo_object_after_fork();
    nmo_module_after_fork();
}

static void in_child(void) {
    after_fork();
    nmo_view_attr_child();
    if (nmo_state != NMO_READY)
        return;
    nmo_pid = nmo_sys_pid();
    nmo_generation++;
    nmo_module_child();
    nmo_live_child();
    nmo_diary_child();
    nmo_thread_child();
    nmo_affine_child();
    nmo_schedule_child();
    nmo_stats_child();
    nmo_mark(NMO_MARK_PROGRAM_START);
}

static bool read_run(const char *path) {
    char *text;
    size_t bytes;
    NMO_TEXT(line, 500);
    long err = nmo_sys_read_file(path, &text, &bytes);
    const char *why = err ? nmo_errno_name(-err) : "";
    int bad = 0;
    if (!err && !bytes) {
        why = "it is empty";
        bad = 1;
    }
    if (!err && !bad) {
        void *space = nmo_sys_map(nmo_run_space(text, bytes));
        bad = space ? nmo_run_parse(&nmo_run, text, bytes, space, &why) : 1;
        if (!space)
            why = "out of memory";
    }
    if (!err && !bad)
        return true;
    nmo_text_add(&line, path);
    if (bad) {
        nmo_text_add(&line, ":");
        nmo_text_number(&line, (uint64_t)bad);
    }
    nmo_text_add(&line, ": ");
    nmo_text_add(&line, why);
    nmo_text_add(&line, ": the program runs as it is");
    nmo_say(nmo_text_end(&line));
    return false;
}

static void start(const char *path) {
    nmo_sys = nmo_run.emulated ? &nmo_sys_emu : &nmo_sys_linux;
    nmo_pid = nmo_sys_pid();
    nmo_view_init();
    if (!nmo_run.emulated && !nmo_run.pinned && !nmo_process_first(path)) {
        nmo_run.pinned = "another process of the same program";
        nmo_warn("another process of this program is bound already: this one is not", "");
    }
    nmo_mark_init();
    if (nmo_run.mode == NMO_MODE_TRACK)
        nmo_track_init();
    nmo_schedule_init();
    nmo_affine_init();
    nmo_own_init();
    nmo_module_scan();
    nmo_track_range();
    if ((nmo_track || nmo_run.nobjects) && nmo_live_init())
        nmo_warn("no memory for the table of objects: nothing is placed", "");
    nmo_state = NMO_READY;
    nmo_thread_init();
    pthread_atfork(before_fork, after_fork, in_child);
    nmo_object_init();
    if (nmo_track)
        nmo_malloc_watch_free();
    nmo_mark(NMO_MARK_PROGRAM_START);
}

__attribute__((constructor)) void nmo_init(void) {
    static int begun;
    if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL))
        return;
    int keep = errno;
    nmo_log_init();
    bool first = nmo_malloc_init();
    nmo_self.quiet = true;
    const char *path = getenv("NUMAOPT_RUN");
    if (!path || !*path) {
        nmo_say("NUMAOPT_RUN is not set: the program runs as it is");
        nmo_state = NMO_OFF;
    } else if (!read_run(path)) {
        nmo_state = NMO_OFF;
    } else {
        start(path);
        if (!first && nmo_run.nobjects)
            nmo_warn("another preloaded allocator comes before numaopt: heap objects are not seen", "");
    }
    nmo_self.quiet = false;
    errno = keep;
}

__attribute__((destructor)) static void nmo_end(void) {
    nmo_stats_finish();
}
