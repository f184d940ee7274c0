/*
 * Counts the calls that a process makes on the files below given folders, and lets one of them fail once, or kills the
 * process at it with SIGKILL. scripts/torture drives it.
 *
 *   clang -shared -fPIC -O1 -o fail-once.so fail-once.c
 *   FAIL_ONCE_CONTROL=/x/control FAIL_ONCE_TRACE=/x/trace FAIL_ONCE_ROOTS='data=/x/data;files=/x/files' \
 *       LD_PRELOAD=$PWD/fail-once.so urlsessiond ...
 *
 * The control file is one `struct control`, shared memory: the driver fills it in, then sets `armed`. From then on each
 * call is counted and leaves a line "NUMBER FUNCTION PATH" in the trace.
 *
 * A call is named by its class and its number within the class, "pwrite data/urlsessiond.db-wal" 12. The class is the
 * function and the kind of path: the name of the root and the path below it, where numbers and random names become "*".
 * A number over all calls would depend on how the threads interleave. Within a class the calls come from one thread (the
 * writer's for the database) or do the same work in any order (the four disk threads for partial files), so that a
 * number means the same call in most runs. The number of commits, and of the pages that a reader finds in its cache,
 * still varies: a run may end before its call comes, and then counts as not met.
 *
 * "create" is an open with O_CREAT, "clone" the ioctl FICLONE. openat2, renameat2 and fallocate come through syscall().
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kill_before = 1, kill_after = 2, fail = 3, shorten = 4 };
/* What becomes of a call. */
enum verdict { proceed, refuse, proceed_and_die, proceed_with_less };

struct control {
    unsigned armed, met;
    unsigned number, fault;
    int error;
    char class[256];
};

static volatile struct control *control;
static int trace = -1;

static struct {
    char name[32], path[512];
} roots[8];
static int root_count;

/* The next definition of a function, that of the C library. */
#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static long direct(long number, ...);

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("FAIL_ONCE_CONTROL"), *log = getenv("FAIL_ONCE_TRACE"), *folders = getenv("FAIL_ONCE_ROOTS");
    if (!file || !log || !folders) return;
    while (*folders && root_count < 8) {
        int length = 0;
        if (sscanf(folders, "%31[^=]=%511[^;]%n", roots[root_count].name, roots[root_count].path, &length) < 2) break;
        root_count++;
        folders += length;
        if (*folders == ';') folders++;
    }
    int descriptor = (int)direct(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0) return;
    void *memory = mmap(0, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    direct(SYS_close, descriptor);
    trace = (int)direct(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (memory != MAP_FAILED) control = memory;
}

/* The class of a call on a path: false for a path outside of the roots. */
static int classify(const char *function, const char *path, char *class, size_t size) {
    for (int index = 0; index < root_count; index++) {
        size_t length = strlen(roots[index].path);
        if (strncmp(path, roots[index].path, length) != 0 || (path[length] != '/' && path[length] != 0)) continue;
        int written = snprintf(class, size, "%s %s", function, roots[index].name);
        const char *rest = path + length;
        for (int depth = 0; *rest; depth++) {
            while (*rest == '/') rest++;
            size_t part = strcspn(rest, "/");
            if (!part) break;
            /* Below data/partial, data/contents and data/bodies all names are numbers or random. */
            int is_random = (depth > 0 && strcmp(roots[index].name, "data") == 0) || strncmp(rest, ".urlsessiond-", 13) == 0;
            written += is_random ? snprintf(class + written, size - written, "/*")
                                 : snprintf(class + written, size - written, "/%.*s", (int)part, rest);
            if (written >= (int)size) return 0;
            rest += part;
        }
        return 1;
    }
    return 0;
}

/* The path that a descriptor stands for. */
static int path_of(int descriptor, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = direct(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
    if (length <= 0 || path[0] != '/') return 0;
    path[length] = 0;
    static const char deleted[] = " (deleted)";
    size_t end = sizeof deleted - 1;
    if ((size_t)length > end && strcmp(path + length - end, deleted) == 0) path[length - end] = 0;
    return 1;
}

static void die(void) {
    direct(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static enum verdict count(const char *class) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        char class[256];
        unsigned count;
    } table[512];
    static int used;
    pthread_mutex_lock(&mutex);
    int index = 0;
    while (index < used && strcmp(table[index].class, class) != 0) index++;
    if (index == 512) index = 511;
    if (index == used) {
        used++;
        snprintf(table[index].class, sizeof table[index].class, "%s", class);
    }
    unsigned number = ++table[index].count;
    int is_met = control->fault && !control->met && number == control->number && strcmp(class, (char *)control->class) == 0;
    if (is_met) control->met = 1;
    char line[300];
    int length = snprintf(line, sizeof line, "%u %s%s\n", number, class, is_met ? " <--" : "");
    direct(SYS_write, trace, line, length);
    pthread_mutex_unlock(&mutex);
    if (!is_met) return proceed;
    switch (control->fault) {
    case kill_before: die();
    case kill_after: return proceed_and_die;
    case shorten: return proceed_with_less;
    default: errno = control->error; return refuse;
    }
}

/* A call on a path, relative to a folder. */
static enum verdict meet_path(const char *function, int folder, const char *path) {
    if (!control || !control->armed || !path) return proceed;
    int saved = errno;
    char whole[1200], class[256];
    int number, is_known = 1;
    if (sscanf(path, "/proc/self/fd/%d", &number) == 1) {
        is_known = path_of(number, whole, sizeof whole);
    } else if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        is_known = folder == AT_FDCWD ? getcwd(whole, 600) != 0 : path_of(folder, whole, 600);
        if (is_known && strcmp(path, ".") != 0) snprintf(whole + strlen(whole), 600, "/%s", path);
    }
    errno = saved;
    return is_known && classify(function, whole, class, sizeof class) ? count(class) : proceed;
}

/* A call on an open file. */
static enum verdict meet_file(const char *function, int descriptor) {
    if (!control || !control->armed) return proceed;
    int saved = errno;
    char path[1200], class[256];
    int is_known = path_of(descriptor, path, sizeof path);
    errno = saved;
    return is_known && classify(function, path, class, sizeof class) ? count(class) : proceed;
}

/* Makes the call as the verdict says. `less` is the same call with about half of the bytes. */
#define CARRY_OUT(type, met, call, less) \
    do { \
        enum verdict judged = (met); \
        if (judged == refuse) return (type)-1; \
        type result = judged == proceed_with_less ? (less) : (call); \
        if (judged == proceed_and_die) die(); \
        return result; \
    } while (0)

#define HALF(count) ((count) > 1 ? (count) / 2 : (count))

/* A system call without a wrapper, and past this library. */
static long direct(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    REAL(syscall);
    return real(number, a, b, c, d, e, f);
}

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    enum verdict found = proceed;
    if (number == SYS_openat2) {
        unsigned long long flags = *(unsigned long long *)c;
        found = meet_path(flags & O_CREAT ? "create" : "openat2", (int)a, (const char *)b);
    } else if (number == SYS_renameat2) {
        found = meet_path("renameat2", (int)c, (const char *)d);
    } else if (number == SYS_fallocate) {
        found = meet_file("fallocate", (int)a);
    }
    CARRY_OUT(long, found, direct(number, a, b, c, d, e, f), -1);
}

/* Paths */

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list); \
        REAL(name); \
        CARRY_OUT(int, meet_path(flags & O_CREAT ? "create" : "open", AT_FDCWD, path), real(path, flags, mode), -1); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list); \
        REAL(name); \
        CARRY_OUT(int, meet_path(flags & O_CREAT ? "create" : "open", folder, path), real(folder, path, flags, mode), -1); \
    }
OPENAT(openat)
OPENAT(openat64)

/* A call that renames or links counts at its new name. */
#define ON_PATH(name, parameters, arguments, folder, path) \
    int name parameters { \
        REAL(name); \
        CARRY_OUT(int, meet_path(#name, folder, path), real arguments, -1); \
    }
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
ON_PATH(mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), folder, path)
ON_PATH(rmdir, (const char *path), (path), AT_FDCWD, path)
ON_PATH(unlink, (const char *path), (path), AT_FDCWD, path)
ON_PATH(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), folder, path)
ON_PATH(rename, (const char *from, const char *to), (from, to), AT_FDCWD, to)
ON_PATH(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), b, to)
ON_PATH(renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), b, to)
ON_PATH(link, (const char *from, const char *to), (from, to), AT_FDCWD, to)
ON_PATH(linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), b, to)
ON_PATH(symlink, (const char *from, const char *to), (from, to), AT_FDCWD, to)
ON_PATH(symlinkat, (const char *from, int b, const char *to), (from, b, to), b, to)

DIR *opendir(const char *path) {
    REAL(opendir);
    enum verdict found = meet_path("opendir", AT_FDCWD, path);
    if (found == refuse) return 0;
    DIR *result = real(path);
    if (found == proceed_and_die) die();
    return result;
}

/* Open files */

#define ON_FILE(name, parameters, arguments, descriptor) \
    int name parameters { \
        REAL(name); \
        CARRY_OUT(int, meet_file(#name, descriptor), real arguments, -1); \
    }
ON_FILE(fsync, (int descriptor), (descriptor), descriptor)
ON_FILE(fdatasync, (int descriptor), (descriptor), descriptor)
ON_FILE(ftruncate, (int descriptor, off_t length), (descriptor, length), descriptor)
ON_FILE(fallocate, (int descriptor, int mode, off_t offset, off_t length), (descriptor, mode, offset, length), descriptor)

int ftruncate64(int descriptor, off64_t length) {
    REAL(ftruncate64);
    CARRY_OUT(int, meet_file("ftruncate", descriptor), real(descriptor, length), -1);
}

/* Returns the number of the error. */
int posix_fallocate(int descriptor, off_t offset, off_t length) {
    REAL(posix_fallocate);
    enum verdict found = meet_file("posix_fallocate", descriptor);
    if (found == refuse) return errno;
    int result = real(descriptor, offset, length);
    if (found == proceed_and_die) die();
    return result;
}

int ioctl(int descriptor, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    REAL(ioctl);
    enum verdict found = request == FICLONE ? meet_file("clone", descriptor) : proceed;
    CARRY_OUT(int, found, real(descriptor, request, argument), -1);
}

#define MOVE_BYTES(name, label, parameters, arguments, less, descriptor) \
    ssize_t name parameters { \
        REAL(name); \
        CARRY_OUT(ssize_t, meet_file(label, descriptor), real arguments, real less); \
    }
MOVE_BYTES(read, "read", (int file, void *bytes, size_t count), (file, bytes, count), (file, bytes, HALF(count)), file)
MOVE_BYTES(write, "write", (int file, const void *bytes, size_t count), (file, bytes, count), (file, bytes, HALF(count)), file)
MOVE_BYTES(pread, "pread", (int file, void *bytes, size_t count, off_t offset), (file, bytes, count, offset),
           (file, bytes, HALF(count), offset), file)
MOVE_BYTES(pread64, "pread", (int file, void *bytes, size_t count, off64_t offset), (file, bytes, count, offset),
           (file, bytes, HALF(count), offset), file)
MOVE_BYTES(pwrite, "pwrite", (int file, const void *bytes, size_t count, off_t offset), (file, bytes, count, offset),
           (file, bytes, HALF(count), offset), file)
MOVE_BYTES(pwrite64, "pwrite", (int file, const void *bytes, size_t count, off64_t offset), (file, bytes, count, offset),
           (file, bytes, HALF(count), offset), file)
MOVE_BYTES(readv, "read", (int file, const struct iovec *parts, int count), (file, parts, count), (file, parts, HALF(count)), file)
MOVE_BYTES(writev, "write", (int file, const struct iovec *parts, int count), (file, parts, count), (file, parts, HALF(count)), file)
MOVE_BYTES(preadv, "pread", (int file, const struct iovec *parts, int count, off_t offset), (file, parts, count, offset),
           (file, parts, HALF(count), offset), file)
MOVE_BYTES(pwritev, "pwrite", (int file, const struct iovec *parts, int count, off_t offset), (file, parts, count, offset),
           (file, parts, HALF(count), offset), file)
MOVE_BYTES(copy_file_range, "copy_file_range",
           (int from, off64_t *start, int to, off64_t *end, size_t count, unsigned flags), (from, start, to, end, count, flags),
           (from, start, to, end, HALF(count), flags), to)
MOVE_BYTES(sendfile, "sendfile", (int to, int from, off_t *offset, size_t count), (to, from, offset, count),
           (to, from, offset, HALF(count)), from)
MOVE_BYTES(sendfile64, "sendfile", (int to, int from, off64_t *offset, size_t count), (to, from, offset, count),
           (to, from, offset, HALF(count)), from)
