/* real.c: the next definition of what the runtime interposes. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "nmo.h"
#include "sys.h"

/* Where the definition is in a library that was loaded with RTLD_LOCAL, it is
 * not after us in the global scope: the calling module's own dependencies lead
 * to it. */
static void *find_from(const char *name, uintptr_t caller) {
    Dl_info info;
    if (!caller || !dladdr((void *)caller, &info) || !info.dli_fname || !info.dli_fname[0])
        return NULL;
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    void *found = dlsym(handle, name);
    dlclose(handle);
    uintptr_t at = (uintptr_t)found;
    return at >= nmo_text_lo && at < nmo_text_hi ? NULL : found;
}

void *nmo_real_find(const char *name, uintptr_t caller) {
    nmo_emu_pause();
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        found = find_from(name, caller);
    nmo_emu_resume();
    return found;
}
