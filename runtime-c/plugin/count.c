/* count.c: the yardstick of emulate.so's speed: a plugin whose callback only
 * counts, a counter for each vCPU on a cache line of its own. Built by
 * analyses/01-emulation-speed, never installed. */
#include <inttypes.h>
#include <stdio.h>

#include "qemu_api.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;
QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

static struct {
    uint64_t n;
} __attribute__((aligned(64))) counter[1024];

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata)
{
    (void)info, (void)vaddr, (void)udata;
    counter[vcpu & 1023].n++;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_access, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
}

static void on_exit(qemu_plugin_id_t id, void *udata)
{
    uint64_t n = 0;
    (void)id, (void)udata;
    for (int i = 0; i < 1024; i++)
        n += counter[i].n;
    fprintf(stderr, "accesses %" PRIu64 "\n", n);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, on_exit, NULL);
    return 0;
}
