/* file.c: where the pages of files are. A page of a file is in the page cache,
 * on the node of the thread that first read, wrote or touched it, and stays
 * there for all mappings of the file and for the program's life. The cache is
 * taken to be empty of the program's files at start. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "emulate.h"

struct file {
    uint64_t dev, inode;
    uint64_t pages; /* room in home */
    int8_t *home;   /* node + 1 by page of the file, 0 is not in the cache */
    bool ahead;     /* the kernel reads around a fault; not in tmpfs */
};

/* Half of what the kernel reads around a page fault: 128 KiB in all. */
#define AROUND 16
#define MOST_PAGES (1ull << 28)

static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;
static size_t file_count, file_room;

uint32_t nmo_file_id(uint64_t dev, uint64_t inode, bool ahead)
{
    uint32_t id = 0;
    pthread_mutex_lock(&file_lock);
    for (size_t i = file_count; i > 0 && id == 0; i--)
        if (files[i - 1].inode == inode && files[i - 1].dev == dev)
            id = (uint32_t)i;
    if (id == 0 && file_count == file_room) {
        size_t room = file_room ? 2 * file_room : 64;
        struct file *grown = realloc(files, room * sizeof *files);
        if (grown != NULL) {
            files = grown;
            file_room = room;
        }
    }
    if (id == 0 && file_count < file_room) {
        files[file_count++] = (struct file){.dev = dev, .inode = inode, .ahead = ahead};
        id = (uint32_t)file_count;
    }
    pthread_mutex_unlock(&file_lock);
    return id;
}

#define TMPFS 0x01021994

uint32_t nmo_file_of(int fd)
{
    struct stat s;
    struct statfs fs;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        return 0;
    return nmo_file_id(s.st_dev, s.st_ino, fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS);
}

/* Makes room for pages below end. pre: file_lock is held. */
static bool reach(struct file *f, uint64_t end)
{
    if (end <= f->pages)
        return true;
    if (end > MOST_PAGES)
        return false;
    uint64_t pages = f->pages ? f->pages : 64;
    while (pages < end)
        pages *= 2;
    int8_t *grown = realloc(f->home, pages);
    if (grown == NULL)
        return false;
    memset(grown + f->pages, 0, pages - f->pages);
    f->home = grown;
    f->pages = pages;
    return true;
}

/* Pages [lo, hi) are in the cache, on node where they were not. */
static void fill(struct file *f, uint64_t lo, uint64_t hi, int node)
{
    if (!reach(f, hi))
        return;
    for (uint64_t p = lo; p < hi; p++)
        if (f->home[p] == 0)
            f->home[p] = (int8_t)(node + 1);
}

int nmo_file_touch(uint32_t id, uint64_t page, int node)
{
    if (id == 0)
        return node;
    pthread_mutex_lock(&file_lock);
    struct file *f = &files[id - 1];
    if (page < f->pages && f->home[page] != 0)
        node = f->home[page] - 1;
    else if (f->ahead)
        fill(f, page < AROUND ? 0 : page - AROUND, page + AROUND, node);
    else
        fill(f, page, page + 1, node);
    pthread_mutex_unlock(&file_lock);
    return node;
}

void nmo_file_used(int fd, int64_t offset, uint64_t bytes, int node)
{
    uint32_t id = bytes > 0 ? nmo_file_of(fd) : 0;
    if (id == 0)
        return;
    if (offset < 0) {
        int64_t end = lseek(fd, 0, SEEK_CUR);
        if (end < (int64_t)bytes)
            return;
        offset = end - (int64_t)bytes;
    }
    pthread_mutex_lock(&file_lock);
    fill(&files[id - 1], (uint64_t)offset >> NMO_PAGE_SHIFT, ((uint64_t)offset + bytes + 4095) >> NMO_PAGE_SHIFT, node);
    pthread_mutex_unlock(&file_lock);
}

void nmo_file_child(void) { pthread_mutex_init(&file_lock, NULL); }
