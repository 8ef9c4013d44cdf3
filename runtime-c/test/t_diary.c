/* Records of threads that write at once, and of handlers that interrupt them: each is in
 * the file once, whole, in the order of its time; texts are cut. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "../plugin/wire.h"
#include "../src/nmo.h"
#include "../src/sys.h"
#include "check.h"
#include "sys_fake.h"

enum { THREADS = 4, RECORDS = 20000, MARK = 1 << 20 };
static char path[200];
static uint64_t handled;

static void handler(int sig) {
    (void)sig;
    nmo_tell(NMO_DYNAMIC, __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED), 0, 0, 0, 0);
}

static void *write_many(void *thread) {
    static const uint64_t frames[3] = {7, 8, 9};
    for (uintptr_t i = 0; i < RECORDS; i++)
        if (i % 10)
            nmo_tell(NMO_LOOP, (uintptr_t)thread, i, 0, 0, 0);
        else
            nmo_tell(NMO_SITE, i, 3, (uintptr_t)frames, (uintptr_t)thread, 0);
    return NULL;
}

static struct {
    uint64_t of[THREADS]; /* next record of the thread */
    uint64_t handled, texts, asked, resident; /* pages */
} seen;

static void look(const struct nmo_log_record *r) {
    const uint64_t *frames = (const uint64_t *)(r + 1);
    bool site = r->op == NMO_SITE;
    if (r->op == NMO_DYNAMIC)
        seen.handled++;
    else if (r->op == NMO_NOTE)
        seen.texts += r->bytes == sizeof *r + 4096;
    else if (r->op == NMO_HOMES)
        for (uint64_t i = 0; i < r->args[1]; i++, seen.asked++)
            seen.resident += ((const unsigned char *)(r + 1))[i] == 0;
    else if (site || r->op == NMO_LOOP) {
        uint64_t thread = r->args[site ? 3 : 0], i = r->args[site ? 0 : 1];
        CHECK(thread < THREADS && i == seen.of[thread], "record %d of thread %d", (int)i, (int)thread);
        CHECK(!site || (frames[0] == 7 && frames[2] == 9), "frames");
        seen.of[thread % THREADS] = i + 1;
    }
}

static void read_back(const char *base) {
    const struct nmo_log_head *h = (const void *)base;
    uint64_t first = h->small_at + h->small_slots * sizeof(struct nmo_small), time = 0;
    CHECK(h->pid == (uint32_t)getpid() && h->lost == 0 && h->used <= h->limit, "pid %u, lost %d", h->pid, (int)h->lost);
    CHECK(h->small_lost >= 99 && h->small_lost < NMO_LOG_SMALL_SLOTS / 2, "%d votes lost", (int)h->small_lost);
    for (uint64_t chunk = first; chunk < h->used; chunk += h->chunk_bytes, time = 0)
        for (uint64_t at = chunk + sizeof(struct nmo_log_chunk); at + sizeof(struct nmo_log_record) <= chunk + h->chunk_bytes;) {
            const struct nmo_log_record *r = (const void *)(base + at);
            if (!r->bytes)
                break;
            CHECK(r->time >= time, "time falls");
            time = r->time;
            look(r);
            at += r->bytes;
        }
}

static const struct nmo_sys *quick;
static uint64_t order; /* of a look's pages: each follows the one before */
static bool gap;

static long slow_move(size_t count, void **pages, const int *nodes, int *status) {
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    gap = gap || (uintptr_t)pages[0] != fake.base + 4096 * order;
    order += count;
    return quick->move(count, pages, nodes, status);
}

/* A look that would take too long is taken in turns, which have rests between them. */
static void turns(void) {
    enum { PAGES = 512 * 10 };
    struct nmo_live live = {.addr = fake.base, .bytes = PAGES * 4096, .generation = nmo_generation}, was;
    struct nmo_sys slow = *nmo_sys;
    quick = nmo_sys;
    slow.move = slow_move;
    nmo_sys = &slow;
    CHECK(nmo_live_take(fake.base + 16, &was) && nmo_live_add(&live), "no table");
    for (int i = 0; i < 400 && order < PAGES && !gap; i++) {
        uint64_t before = order;
        nmo_homes_between();
        CHECK(order - before < PAGES, "all at once");
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    CHECK(order == PAGES && !gap, "%d pages", (int)order);
    nmo_sys = quick;
}

/* All of them once, and no more within a second; what goes if it is large. */
static void homes(void) {
    struct nmo_live live = {.addr = fake.base + 16, .bytes = 600 * 4096, .generation = nmo_generation};
    CHECK(nmo_live_init() == 0 && nmo_live_add(&live), "no table");
    fake_touch(fake.base + 4096, 100 * 4096, 0);
    nmo_homes_between();
    nmo_homes_between();
    nmo_homes_gone(fake.base, 255 * 1024);
    nmo_homes_gone(fake.base, 256 * 1024);
    turns();
}

/* More pages of small allocations than the table has slots: some are left out, and said. */
static void small(void) {
    struct nmo_site site = {.id = 1};
    struct nmo_live live = {0};
    for (uintptr_t page = 1; page < NMO_LOG_SMALL_SLOTS + 100; page++)
        nmo_track_alloc(&site, page << 12, 64, NMO_HEAP, &live);
}

int main(void) {
    pthread_t t[THREADS];
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    fake_reset(1);
    snprintf(path, sizeof path, "%s.log", getenv("SCRATCH") ? getenv("SCRATCH") : "/tmp/t_diary");
    nmo_run.log = path;
    nmo_tell(NMO_LOOP, 0, 0, 0, 0, 0);
    CHECK(!nmo_heard(), "nobody listens before the hello");
    nmo_track_init();
    CHECK(nmo_diary && nmo_track && nmo_heard(), "%s", path);
    if (!nmo_diary)
        return 1;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, write_many, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    char *text = malloc(MARK);
    memset(text, 'x', MARK);
    text[MARK - 1] = 0;
    nmo_tell(NMO_NOTE, (uintptr_t)text, 0, 0, 0, 0);
    free(text);

    homes();
    small();

    snprintf(path + strlen(path), 40, ".%d", getpid());
    int fd = open(path, O_RDONLY);
    read_back(mmap(NULL, (size_t)lseek(fd, 0, SEEK_END), PROT_READ, MAP_SHARED, fd, 0));
    for (int i = 0; i < THREADS; i++)
        CHECK(seen.of[i] == RECORDS, "thread %d: %d records", i, (int)seen.of[i]);
    CHECK(seen.handled == handled && handled > 0, "%d handlers, %d records", (int)handled, (int)seen.handled);
    CHECK(seen.texts == 1, "a long text");
    CHECK(seen.asked == 601 + 64 + 5120 && seen.resident == 100 + 63 + 100, "homes of %d pages, %d resident", (int)seen.asked, (int)seen.resident);
    unlink(path);
    CHECK_END;
}
