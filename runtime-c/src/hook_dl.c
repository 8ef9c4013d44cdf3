/* hook_dl.c: files that the program loads while it runs. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "nmo.h"

/* A name without a slash is searched for along the caller's own run path, and
 * the loader knows the caller by the return address: such a call must be left
 * with a jump, and what it loaded is looked at later. */
static bool needs_caller(const char *file) {
    bool slash = false;
    for (; file && *file; file++) {
        if (*file == '$')
            return true;
        slash |= *file == '/';
    }
    return !slash;
}

__attribute__((noinline)) static void *open_and_look(void *(*real)(const char *, int), const char *file, int flags) {
    void *handle = real(file, flags);
    if (handle) {
        bool quiet = nmo_self.quiet;
        nmo_self.quiet = true;
        if (nmo_module_scan())
            nmo_object_init();
        nmo_self.quiet = quiet;
    }
    return handle;
}

NMO_EXPORT void *dlopen(const char *file, int flags) {
    static void *(*real)(const char *, int);
    if (NMO_UNLIKELY(!real))
        real = (void *(*)(const char *, int))nmo_real_find("dlopen", 0);
    if (nmo_state != NMO_READY || !file)
        return real(file, flags);
    if (!needs_caller(file))
        return open_and_look(real, file, flags);
    nmo_module_expect();
    return real(file, flags);
}
