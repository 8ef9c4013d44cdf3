/* mark.c: stores to the magic page, by which the lab's plugin knows when to
 * count (plugin/wire.h). */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "../plugin/wire.h"
#include "nmo.h"
#include "sys.h"

static volatile char *page;
bool nmo_mark_regions;

void nmo_mark_init(void) {
    if (!nmo_run.mark)
        return;
    long at = nmo_sys_call(SYS_mmap, (long)NMO_MARK_BASE, 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != (long)NMO_MARK_BASE) {
        nmo_say("the page for the lab's marks is not free: nothing of this process is counted");
        return;
    }
    page = (volatile char *)at;
    nmo_mark_regions = nmo_run.nonly > 0;
}

void nmo_mark(unsigned offset) {
    if (page)
        page[offset] = 1;
}

bool nmo_mark_only(uintptr_t fn) {
    for (int i = 0; i < nmo_run.nonly; i++)
        if (nmo_run.only[i].address == fn)
            return true;
    return false;
}
