/* system.c: the sides of src/sys.h that the linkable library uses: Linux, and a run
 * that is nothing but the machine's nodes. Tests bring others. */
#include "../src/nmo.h"
#include "../src/sys.h"

struct nmo_run nmo_run;
const struct nmo_sys *nmo_sys = &nmo_sys_linux;
