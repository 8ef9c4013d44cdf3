/* check.h: what the tests share. A test ends with 0, 1 or 77 (skipped, with the
 * reason on stderr). */
#ifndef NMO_CHECK_H
#define NMO_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures __attribute__((unused));

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s:", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, " " __VA_ARGS__);                                                      \
            fprintf(stderr, "\n");                                                                 \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

#define CHECK_END return check_failures != 0

#endif
