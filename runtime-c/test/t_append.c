/* A summary that the file has no room for is not passed over in silence. */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../src/sys.h"
#include "check.h"

int main(void) {
    char path[64], text[200] = "", got[400];
    snprintf(path, sizeof path, "/tmp/t_append.%d", getpid());
    memset(text, 'x', sizeof text);
    CHECK(nmo_sys_append(path, text, sizeof text) == 0);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){300, 300});
    CHECK(nmo_sys_append(path, text, sizeof text) < 0);
    FILE *f = fopen(path, "r");
    CHECK(f && fread(got, 1, sizeof got, f) == 300);
    remove(path);
    CHECK_END;
}
