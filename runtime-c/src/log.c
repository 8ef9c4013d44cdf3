/* log.c: text and messages without allocation; each kind of warning once, the
 * rest counted. */
#include "nmo.h"
#include "sys.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../plugin/wire.h"

enum { MAX_WARNINGS = 32, WARNING_BYTES = 400 };

static struct {
    const char *kind;
    unsigned times;
    char text[WARNING_BYTES];
} warnings[MAX_WARNINGS];
static int nwarnings;
static nmo_lock warn_lock;

static void add_bytes(struct nmo_text *text, const char *s, size_t n) {
    while (n-- && text->used + 1 < text->size)
        text->to[text->used++] = *s++;
}

void nmo_text_add(struct nmo_text *text, const char *s) {
    add_bytes(text, s, nmo_mem_length(s));
}

void nmo_text_number(struct nmo_text *text, uint64_t n) {
    char digits[20];
    int at = sizeof digits;
    do
        digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    add_bytes(text, digits + at, sizeof digits - (size_t)at);
}

void nmo_text_hex(struct nmo_text *text, uint64_t n) {
    char digits[16];
    int at = sizeof digits;
    do
        digits[--at] = "0123456789abcdef"[n % 16];
    while (n /= 16);
    add_bytes(text, digits + at, sizeof digits - (size_t)at);
}

void nmo_text_json(struct nmo_text *text, const char *s) {
    nmo_text_add(text, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            char escaped[] = {'\\', (char)c, 0};
            nmo_text_add(text, escaped);
        } else if (c < 0x20) {
            nmo_text_add(text, "\\u00");
            add_bytes(text, &"0123456789abcdef"[c >> 4], 1);
            add_bytes(text, &"0123456789abcdef"[c & 15], 1);
        } else {
            add_bytes(text, s, 1);
        }
    }
    nmo_text_add(text, "\"");
}

const char *nmo_text_end(struct nmo_text *text) {
    text->to[text->used] = 0;
    return text->to;
}

const char *nmo_errno_name(long err) {
    switch (err) {
    case EPERM: return "EPERM: not permitted here, a container's seccomp filter perhaps (--cap-add SYS_NICE)";
    case ENOSYS: return "ENOSYS: this kernel has no such call";
    case ENOMEM: return "ENOMEM: out of memory or of mappings (vm.max_map_count)";
    case EINVAL: return "EINVAL: a node without memory or outside the cpuset";
    case EFAULT: return "EFAULT";
    case EIO: return "EIO";
    case ENOENT: return "ENOENT: no such file";
    case EACCES: return "EACCES: not readable";
    case EFBIG: return "EFBIG: the file would be too large";
    case ENOSPC: return "ENOSPC: no space left";
    default: return "an error";
    }
}

/* What stderr was at the start. A program may close it and get the number back
 * for a file of its own, in which our lines have no business. */
static struct {
    bool open;
    dev_t dev;
    ino_t ino;
} stderr_file;

static bool stat_stderr(struct stat *st) {
#ifdef SYS_fstat
    return nmo_sys_call(SYS_fstat, 2, (long)st, 0, 0, 0, 0) >= 0;
#else
    return nmo_sys_call(SYS_newfstatat, 2, (long)"", (long)st, 0x1000 /* AT_EMPTY_PATH */, 0, 0) >= 0;
#endif
}

void nmo_log_init(void) {
    struct stat st;
    stderr_file.open = stat_stderr(&st);
    if (stderr_file.open)
        stderr_file.dev = st.st_dev, stderr_file.ino = st.st_ino;
}

static bool stderr_is_same(void) {
    struct stat st;
    return stderr_file.open && stat_stderr(&st) && st.st_dev == stderr_file.dev && st.st_ino == stderr_file.ino;
}

void nmo_say(const char *line) {
    if (!stderr_is_same())
        return;
    NMO_TEXT(text, 600);
    nmo_text_add(&text, "numaopt: ");
    nmo_text_add(&text, line);
    if (text.used + 1 >= text.size)
        text.used--;
    nmo_text_add(&text, "\n");
    nmo_sys_write(2, text.to, text.used);
}

static int find_or_add(const char *kind, const char *detail, bool *fresh) {
    *fresh = false;
    for (int i = 0; i < nwarnings; i++)
        if (warnings[i].kind == kind)
            return i;
    if (nwarnings == MAX_WARNINGS)
        return -1;
    struct nmo_text text = {0, WARNING_BYTES, warnings[nwarnings].text};
    nmo_text_add(&text, kind);
    if (detail && *detail) {
        nmo_text_add(&text, ": ");
        nmo_text_add(&text, detail);
    }
    nmo_text_end(&text);
    warnings[nwarnings].kind = kind;
    *fresh = true;
    return nwarnings++;
}

void nmo_warn(const char *kind, const char *detail) {
    bool fresh;
    nmo_lock_take(&warn_lock);
    int i = find_or_add(kind, detail, &fresh);
    if (i >= 0)
        warnings[i].times++;
    nmo_lock_release(&warn_lock);
    if (fresh && nmo_track)
        nmo_tell(NMO_NOTE, (uintptr_t)warnings[i].text, 0, 0, 0, 0);
}

void nmo_warn_child(void) {
    warn_lock = (nmo_lock){0};
    nwarnings = 0;
}

int nmo_warn_count(void) {
    return nwarnings;
}
const char *nmo_warn_text(int i) {
    return warnings[i].text;
}
unsigned nmo_warn_times(int i) {
    return warnings[i].times;
}
