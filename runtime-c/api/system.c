/* system.c: what the linkable library has of the runtime below src/sys.h: Linux, or
 * the emulator, and a run that is nothing but the machine's nodes. Tests bring others. */
#include "../src/nmo.h"
#include "../src/sys.h"

struct nmo_run nmo_run;
const struct nmo_sys *nmo_sys = &nmo_sys_linux;
size_t nmo_view_bytes; /* affinity is not asked for here */
