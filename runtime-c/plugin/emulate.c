/* emulate.c: the user-mode plugin: what is instrumented, and the order of
 * start-up. Loaded by `numaopt profile` as
 *
 *   qemu-x86_64 -plugin emulate.so,conf=FILE ... program args
 *
 * Everything is counted from the first instruction of the program's loader on,
 * except the tracker's own code. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "emulate.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static qemu_plugin_vcpu_mem_cb_t touch;
static __thread unsigned this_vcpu; /* of the thread that makes a system call */

static void on_vcpu_init(qemu_plugin_id_t id, unsigned vcpu)
{
    (void)id;
    nmo_thread_new(vcpu);
}

static void on_vcpu_exit(qemu_plugin_id_t id, unsigned vcpu)
{
    (void)id;
    nmo_thread_end(vcpu);
}

/* Remembers where the program's own code calls another's: new_record wants it. */
static void on_leave(unsigned vcpu, void *code) { nmo_vcpus[vcpu].caller = (uint64_t)code; }

static void on_call(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *code)
{
    on_leave(vcpu, code);
    touch(vcpu, info, vaddr, code);
}

enum way { WAY_ON, WAY_CALL, WAY_JUMP };

/* How the instruction may leave the module: by a call, or a jump through memory,
 * both of which access memory; by a jump to the procedure linkage table, as a
 * function's last call compiles to; or not. */
static enum way way_of(const struct qemu_plugin_insn *insn, uint64_t pc)
{
    const uint8_t *b = qemu_plugin_insn_data(insn);
    size_t n = qemu_plugin_insn_size(insn), i = 0;
    while (i < n && (b[i] == 0xf2 || b[i] == 0x3e || (b[i] & 0xf0) == 0x40)) /* bnd, notrack, REX */
        i++;
    if (n - i >= 2 && b[i] == 0xff) {
        bool call = (b[i + 1] & 0x38) == 0x10, table = b[i + 1] == 0x25; /* call *, jmp *x(%rip) */
        return (call || table) && nmo_code_own(pc) ? WAY_CALL : WAY_ON;
    }
    if (n - i != 5 || (b[i] != 0xe8 && b[i] != 0xe9))
        return WAY_ON;
    int32_t distance;
    memcpy(&distance, b + i + 1, sizeof distance);
    if (!nmo_code_leaves(pc, pc + n + (uint64_t)distance))
        return WAY_ON;
    return b[i] == 0xe8 ? WAY_CALL : WAY_JUMP;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    (void)id;
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t pc = qemu_plugin_insn_vaddr(insn);
        bool tracker;
        uint64_t fn = nmo_code_function(pc, &tracker);
        if (tracker)
            continue;
        /* The function id in the upper 16 bits, the address below. */
        void *code = (void *)(fn << 48 | (pc & 0xffffffffffffull));
        enum way way = way_of(insn, pc);
        if (way == WAY_JUMP)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_leave, QEMU_PLUGIN_CB_NO_REGS, code);
        qemu_plugin_register_vcpu_mem_cb(insn, way == WAY_CALL ? on_call : touch, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, code);
    }
}

static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2, uint64_t a3,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    const uint64_t a[6] = {a1, a2, a3, a4, a5, a6};
    (void)id, (void)a7, (void)a8;
    this_vcpu = vcpu;
    nmo_syscall_enter(vcpu, num, a);
}

static void on_syscall_ret(qemu_plugin_id_t id, unsigned vcpu, int64_t num, int64_t ret)
{
    (void)id;
    nmo_syscall_leave(vcpu, num, ret);
}

static void on_fork_child(void)
{
    nmo_arena_child();
    nmo_space_child();
    nmo_file_child();
    nmo_code_child();
    nmo_object_child();
    nmo_touch_child();
    nmo_dram_child();
    nmo_thread_child(this_vcpu);
    nmo_pace_child(&nmo_vcpus[this_vcpu]);
}

/* The command of this process, from QEMU's own: what follows "-0 NAME". */
static void put_command(void)
{
    static char text[1 << 20];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    for (ssize_t got; fd >= 0 && n < sizeof text - 2 && (got = read(fd, text + n, sizeof text - 2 - n)) > 0;)
        n += (size_t)got;
    if (fd >= 0)
        close(fd);
    char *end = text + n, *p = text;
    while (p < end && strcmp(p, "-0") != 0)
        p += strlen(p) + 1;
    if (p >= end)
        return;
    char *name = p + strlen(p) + 1, *program = name < end ? name + strlen(name) + 1 : end;
    if (program >= end)
        return;
    nmo_arena->program = nmo_arena_text(program);
    /* argv[0] and the arguments, one text; the reader stops at the empty word. */
    char *rest = program + strlen(program) + 1;
    size_t name_bytes = strlen(name) + 1, rest_bytes = rest < end ? (size_t)(end - rest) : 0;
    uint64_t at = nmo_arena_add(NMO_SEC_TEXT, name_bytes + rest_bytes + 8);
    if (at == 0)
        return;
    uint32_t count = 1;
    for (char *q = rest; q < end; q += strlen(q) + 1)
        count++;
    char *to = nmo_arena_at(NMO_SEC_TEXT, at);
    memcpy(to, &count, 4); /* the number of words, then the words */
    memcpy(to + 4, name, name_bytes);
    memcpy(to + 4 + name_bytes, rest, rest_bytes);
    nmo_arena->command = (uint32_t)at;
}

static int start(const char *conf)
{
    if (nmo_config_read(conf) != 0)
        return -1;
    nmo_vcpus = mmap(NULL, NMO_MAX_VCPUS * sizeof *nmo_vcpus, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (nmo_vcpus == MAP_FAILED || nmo_arena_open() != 0) {
        fprintf(stderr, "numaopt: emulate.so: no room for the counters: %s (is there a limit on virtual memory or file size? see ulimit -v, ulimit -f)\n",
                strerror(errno));
        return -1;
    }
    put_command();
    if (nmo_arena_send() != 0) {
        fprintf(stderr, "numaopt: emulate.so: nobody listens at %s: %s\n", nmo_config.socket, strerror(errno));
        return -1;
    }
    touch = nmo_touch_callback();
    return 0;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    const char *conf = NULL;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "conf=", 5))
            conf = argv[i] + 5;
    if (conf == NULL || info->system_emulation || strcmp(info->target_name, "x86_64") != 0) {
        fprintf(stderr, "numaopt: emulate.so: is for qemu-x86_64 -plugin emulate.so,conf=FILE\n");
        return 1;
    }
    if (start(conf) != 0)
        return 1;
    pthread_atfork(NULL, NULL, on_fork_child);
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
    qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_exit);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_ret);
    return 0;
}
