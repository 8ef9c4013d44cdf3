#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define ATTEMPTS 3
#define PAUSE_SECONDS 1

static int start(int fd)
{
    return write(fd, "1", 1) == 1 ? 0 : -errno;
}

int nmo_cpu_start(const char *online)
{
    int fd = open(online, O_WRONLY | O_CLOEXEC), err;
    if (fd < 0)
        return -errno;
    for (int left = ATTEMPTS; (err = start(fd)) != 0 && --left > 0; nmo_beat())
        sleep(PAUSE_SECONDS);
    close(fd);
    return err;
}
