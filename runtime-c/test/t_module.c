/* The table of loaded files: files that come and go do not fill it, filters are
 * whole while they are built again, and waiting for a dlopen ends once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "../src/nmo.h"
#include "check.h"
#include "sys_fake.h"

static void *open_library(const char *function) {
    void *handle = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
    CHECK(!handle || dlsym(handle, function), "%s", function);
    return handle;
}

static void come_and_go(void) {
    for (int i = 0; i < 2500; i++) {
        void *handle = open_library("ns_name_ntop");
        if (!handle)
            break;
        nmo_module_scan();
        CHECK(nmo_module_of((uintptr_t)dlsym(handle, "ns_name_ntop")) != NULL, "round %d", i);
        dlclose(handle);
        nmo_module_scan();
        if (check_failures)
            break;
    }
    CHECK(nmo_module_of((uintptr_t)&come_and_go) != NULL);
}

static void *look(void *unused) {
    (void)unused;
    long bad = 0;
    for (int i = 0; i < 200000; i++) {
        if (nmo_module_pending)
            nmo_module_refresh();
        bad += nmo_module_pending < 0;
        bad += !nmo_object_possible(1000, 8192, NMO_HEAP);
    }
    return (void *)bad;
}

/* The object has no line for frame 0, so every address can be its. */
static void threads(void) {
    pthread_t thread[4];
    struct nmo_frame frame = {.k = 1, .hi = 1000};
    struct nmo_module module = {.build_id = "", .path = "/nowhere/absent"};
    struct nmo_object o = {.kind = NMO_HEAP, .rank = -1, .count = 1, .min_bytes = 4096, .max_bytes = 1 << 20, .frames = &frame, .nframes = 1, .depth = 2};
    nmo_run.modules = &module;
    nmo_run.nmodules = 1;
    nmo_run.objects = &o;
    nmo_run.nobjects = 1;
    nmo_object_init();
    CHECK(nmo_object_min == 4096);
    nmo_module_expect();
    CHECK(nmo_object_min == 0 && nmo_module_pending);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, look, NULL);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        CHECK(!bad, "%ld looks", (long)bad);
    }
    CHECK(nmo_module_pending >= 0);
    while (nmo_module_pending)
        nmo_module_refresh();
    CHECK(nmo_object_min == 4096, "%zu", nmo_object_min);
    nmo_module_expect(); /* a slow dlopen outlives the looks of others */
    pthread_create(&thread[0], NULL, look, NULL);
    pthread_join(thread[0], NULL);
    CHECK(nmo_module_pending > 0);
}

int main(void) {
    come_and_go();
    threads();
    CHECK_END;
}
