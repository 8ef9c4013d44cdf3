/* sampler.c: a processor that samples loads and stores, for tests on machines that
 * have none: one access in about PERIOD of each thread is written to FILE, with its
 * address, instruction, time, thread and CPU. Mappings follow in FILE.maps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qemu_api.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

struct sample {
    uint64_t time, addr, ip;
    uint32_t tid, cpu, store, reserved;
};

static FILE *out;
static char path[4096];
static uint64_t period = 1000;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread uint64_t left, random_state;

static uint64_t next(void)
{
    if (!random_state)
        random_state = (uint64_t)syscall(SYS_gettid) * 0x9E3779B97F4A7C15ull | 1;
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return 1 + random_state % (2 * period - 1);
}

static void touch(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *ip)
{
    (void)vcpu;
    if (left == 0)
        left = next();
    if (--left)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct sample s = {(uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec, addr, (uint64_t)ip,
                       (uint32_t)syscall(SYS_gettid), (uint32_t)sched_getcpu(), qemu_plugin_mem_is_store(info), 0};
    pthread_mutex_lock(&lock);
    fwrite(&s, sizeof s, 1, out);
    pthread_mutex_unlock(&lock);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        qemu_plugin_register_vcpu_mem_cb(insn, touch, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, (void *)qemu_plugin_insn_vaddr(insn));
    }
}

static void end(qemu_plugin_id_t id, void *unused)
{
    (void)id, (void)unused;
    pthread_mutex_lock(&lock);
    fclose(out);
    strcat(path, ".maps");
    FILE *from = fopen("/proc/self/maps", "r"), *to = fopen(path, "w");
    for (int c; from && to && (c = fgetc(from)) != EOF;)
        fputc(c, to);
    if (to)
        fclose(to);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4))
            snprintf(path, sizeof path - 5, "%s.%d", argv[i] + 4, (int)getpid());
        if (!strncmp(argv[i], "period=", 7))
            period = strtoull(argv[i] + 7, NULL, 10);
    }
    out = fopen(path, "wb");
    if (!out)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
