/* What the tracer of plugins/advisor_similarity is told, and nothing made of it: blocks and accesses are counted. */
#include "qemu_api.h"

EXPORT int qemu_plugin_version = QEMU_PLUGIN_API;

static unsigned long blocks, bytes;

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *insn) {
    (void)vcpu, (void)info, (void)insn;
    bytes += address & 1;
}

static void on_block(unsigned vcpu, void *unused) {
    (void)vcpu, (void)unused;
    blocks++;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_access, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    return 0;
}
