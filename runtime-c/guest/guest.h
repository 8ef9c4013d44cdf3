/* guest.h: what the files of the lab guest's init share.
 *
 * init is process 1 of the four-node guest that `numaopt lab` boots. It mounts
 * the host's files read-only (NFS, served by numaopt itself), lays a fresh
 * writable layer over them for each run, starts the program in it, and says what
 * happened over one TCP connection. It decides nothing: runs, environment and
 * limits come from the job file that the host packed into the initramfs.
 */
#ifndef NMO_GUEST_H
#define NMO_GUEST_H

#include <stddef.h>
#include <stdint.h>

/* Frames to the host: kind, length (4 bytes, big endian), payload.
 * internal/lab/control.go is the reader. */
enum nmo_frame {
    NMO_F_LOG = 'L',    /* text: progress, for -v */
    NMO_F_FATAL = 'X',  /* text: why no run can take place */
    NMO_F_BEGIN = 'b',  /* run number, decimal */
    NMO_F_OUT = 'o',    /* bytes of the program's stdout */
    NMO_F_ERR = 'e',    /* bytes of its stderr */
    NMO_F_STATUS = 's', /* "WAITSTATUS MICROSECONDS OOMKILLS", decimal */
    NMO_F_SUMMARY = 'm',/* the runtime's JSON lines */
    NMO_F_ENTRY = 'f',  /* "KIND MODE MTIME_NS SIZE PATH\0TARGET", octal mode */
    NMO_F_DATA = 'd',   /* bytes of the last entry, SIZE in all */
    NMO_F_BEAT = 'h',   /* empty: init is well, and the host's files answer */
    NMO_F_DONE = 'z',   /* the last frame */
};

/* ---- init.c ---- */
void nmo_say(enum nmo_frame kind, const void *data, size_t bytes);
void nmo_sayf(enum nmo_frame kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Says why, and powers off. */
void nmo_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* To be called at least every second while init waits for something: says
 * NMO_F_BEAT every few seconds, once the host's files have answered. */
void nmo_beat(void);

/* ---- cpu.c: CPUs that the kernel left off at boot (maxcpus=1) ---- */
/* Starts the CPU with this `online` file. One that a busy host did not run in time
 * may start at the next attempt. Returns 0 or a negative errno. */
int nmo_cpu_start(const char *online);

/* ---- mark.c: stores that the counting plugin sees ---- */
void nmo_mark_map(void);
void nmo_mark(size_t offset);
/* Shows the plugin pages of every node. Returns 0 or a negative errno. */
int nmo_mark_calibrate(int nodes);

/* ---- back.c: the files a run changed ---- */
void nmo_back_send(const char *upper, const char *skip);

/* ---- selftest.c: accesses whose remote share is known by construction ---- */
int nmo_selftest(const char *which, int nodes, int cpus);

#endif
