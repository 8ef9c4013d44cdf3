#define _GNU_SOURCE
#include "guest.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../plugin/lab.h"
#include "job.h"
#include "run.h"

/* Addresses of QEMU's user network; internal/lab/qemu.go forwards the ports. */
#define HOST "10.0.2.100"
#define SELF "10.0.2.15"
#define PORT_CONTROL 2050
#define NFS_OPTIONS                                                                        \
    "vers=3,proto=tcp,nolock,hard,timeo=6000,rsize=262144,actimeo=3600,nocto,addr=" HOST   \
    ",port=2049,mountaddr=" HOST ",mountport=2048,mountproto=tcp,mountvers=3"

static int control = -1;

static void write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return; /* the host has gone; QEMU will be ended */
        p += w;
        n -= (size_t)w;
    }
}

void nmo_say(enum nmo_frame kind, const void *data, size_t bytes)
{
    unsigned char head[5] = {(unsigned char)kind, (unsigned char)(bytes >> 24), (unsigned char)(bytes >> 16),
                             (unsigned char)(bytes >> 8), (unsigned char)bytes};
    if (control < 0) { /* before the network is up: the console */
        write_all(2, data, bytes);
        write_all(2, "\n", 1);
        return;
    }
    write_all(control, (const char *)head, sizeof head);
    write_all(control, data, bytes);
}

void nmo_sayf(enum nmo_frame kind, const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    nmo_say(kind, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

#define BEAT_SECONDS 5

/* The question to the host's file server also keeps its connection: Linux closes
 * one that was idle for five minutes, and QEMU's user network does not let it
 * connect again. The answer is never cached. */
void nmo_beat(void)
{
    static time_t next;
    struct timespec now;
    struct statfs fs;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec < next)
        return;
    next = now.tv_sec + BEAT_SECONDS;
    if (statfs("/lower", &fs) == 0) /* where nobody answers it waits, and the host misses the beat */
        nmo_say(NMO_F_BEAT, "", 0);
}

static void power_off(void)
{
    if (control >= 0) {
        char end;
        shutdown(control, SHUT_WR);
        while (read(control, &end, 1) > 0) /* until the host has read everything */
            ;
    }
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}

void nmo_fatal(const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    nmo_say(NMO_F_FATAL, text, strlen(text));
    power_off();
    __builtin_unreachable();
}

static void must_mount(const char *what, const char *where, const char *type, unsigned long flags, const char *opt)
{
    mkdir(where, 0755);
    if (mount(what, where, type, flags, opt) != 0)
        nmo_fatal("mount %s at %s: %s", type, where, strerror(errno));
}

static void load_modules(void)
{
    struct dirent **names;
    int n = scandir("/modules", &names, NULL, alphasort); /* "03-sunrpc.ko": in load order */
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] == '.')
            continue;
        char path[512];
        snprintf(path, sizeof path, "/modules/%s", names[i]->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST))
            nmo_fatal("kernel module %s: %s", names[i]->d_name, strerror(errno));
        close(fd);
    }
}

static void start_cpus(int cpus)
{
    for (int n = 1; n < cpus; n++) {
        char path[64];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/online", n);
        int err = nmo_cpu_start(path);
        if (err)
            nmo_fatal("start CPU %d (%s): %s", n, path, strerror(-err));
        nmo_beat();
    }
}

static void interface_up(int sock, const char *name, const char *address)
{
    struct ifreq r;
    memset(&r, 0, sizeof r);
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    struct sockaddr_in *in = (struct sockaddr_in *)&r.ifr_addr;
    if (address) {
        in->sin_family = AF_INET;
        inet_pton(AF_INET, address, &in->sin_addr);
        if (ioctl(sock, SIOCSIFADDR, &r) != 0)
            nmo_fatal("network %s: %s", name, strerror(errno));
        inet_pton(AF_INET, "255.255.255.0", &in->sin_addr);
        ioctl(sock, SIOCSIFNETMASK, &r);
    }
    r.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(sock, SIOCSIFFLAGS, &r) != 0)
        nmo_fatal("network %s: %s", name, strerror(errno));
}

static void connect_host(void)
{
    int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    interface_up(sock, "lo", NULL);
    interface_up(sock, "eth0", SELF);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT_CONTROL)};
    inet_pton(AF_INET, HOST, &to.sin_addr);
    if (connect(sock, (struct sockaddr *)&to, sizeof to) != 0)
        nmo_fatal("connect to the host: %s", strerror(errno));
    control = sock;
}

static char *read_file(const char *path, size_t *bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        nmo_fatal("%s: %s", path, strerror(errno));
    char *text = malloc((size_t)st.st_size + 1);
    ssize_t n, at = 0;
    while ((n = read(fd, text + at, (size_t)(st.st_size - at))) > 0)
        at += n;
    close(fd);
    text[at] = 0;
    *bytes = (size_t)at;
    return text;
}

static void device_links(void)
{
    symlink("/proc/self/fd", "/dev/fd");
    symlink("/proc/self/fd/0", "/dev/stdin");
    symlink("/proc/self/fd/1", "/dev/stdout");
    symlink("/proc/self/fd/2", "/dev/stderr");
}

int main(void)
{
    struct nmo_job job;
    size_t bytes;
    must_mount("dev", "/dev", "devtmpfs", 0, NULL);
    must_mount("proc", "/proc", "proc", 0, NULL);
    must_mount("sys", "/sys", "sysfs", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(console, fd);
    device_links();
    load_modules();
    connect_host();
    char *text = read_file("/job", &bytes);
    nmo_job_read(&job, text, bytes);
    sethostname(job.host ? job.host : "lab", strlen(job.host ? job.host : "lab"));
    must_mount(HOST ":/", "/lower", "nfs", MS_RDONLY, NFS_OPTIONS);
    must_mount("/dev/nvme0n1", "/scratch", "ext4", 0, NULL);
    start_cpus(job.nodes * job.cpus);
    nmo_mark_map();
    int err = nmo_mark_calibrate(job.nodes);
    if (err)
        nmo_fatal("place a page on each node: %s", strerror(-err));
    for (int k = 0; k < job.runs; k++)
        nmo_run(&job, k);
    nmo_say(NMO_F_DONE, "", 0);
    power_off();
}
