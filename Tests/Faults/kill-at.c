/*
 * Kills the process at a chosen call, with SIGKILL.
 *
 *   cc -shared -fPIC -O1 -o kill-at.so kill-at.c -ldl
 *   KILL_AT_CONTROL=/tmp/x/kill LD_PRELOAD=$PWD/kill-at.so urlsessiond ...
 *   echo -n 'before rename a.bin' > /tmp/x/kill
 *
 * The control file has one line: "before rename TEXT" or "after rename TEXT", where TEXT is part of the old or the new
 * name of a renameat2 (after: of one that succeeded), or "before write TEXT" or "after sync TEXT", where TEXT is part of the
 * path of the file that is written to or synced: by the first sync after more was written than the header of SQLite's log,
 * which is synced before the first frames.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The text that the control file has behind `point`, or 0. */
static int wanted(const char *point, char *text, size_t size) {
    const char *control = getenv("KILL_AT_CONTROL");
    if (!control) return 0;
    int descriptor = open(control, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    ssize_t length = read(descriptor, text, size - 1);
    close(descriptor);
    size_t begin = strlen(point);
    if (length <= (ssize_t)begin || memcmp(text, point, begin) != 0) return 0;
    memmove(text, text + begin, length - begin);
    text[length - begin] = 0;
    return 1;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    static long (*real)(long, ...);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number != SYS_renameat2) return real(number, a, b, c, d, e, f);

    char text[4096];
    int saved = errno;
    if (wanted("before rename ", text, sizeof text)
        && (strstr((const char *)b, text) || strstr((const char *)d, text)))
        die();
    errno = saved;
    long result = real(number, a, b, c, d, e, f);
    saved = errno;
    if (result == 0 && wanted("after rename ", text, sizeof text)
        && (strstr((const char *)b, text) || strstr((const char *)d, text)))
        die();
    errno = saved;
    return result;
}

/* Whether the control file has `point` and a part of the descriptor's path. */
static int names(const char *point, int descriptor) {
    char text[4096], link[64], target[4096];
    int saved = errno, result = 0;
    if (wanted(point, text, sizeof text)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, target, sizeof target - 1);
        if (length > 0) {
            target[length] = 0;
            result = strstr(target, text) != 0;
        }
    }
    errno = saved;
    return result;
}

/* Whether more than a header was written to the file that a sync is waited for. */
static volatile int has_content;

static void look(int descriptor, size_t count) {
    if (names("before write ", descriptor)) die();
    if (count > 32 && names("after sync ", descriptor)) has_content = 1;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    look(descriptor, count);
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real) real = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    return real(descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    look(descriptor, count);
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    return real(descriptor, bytes, count, offset);
}

static int synced(const char *name, int descriptor) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = real(descriptor);
    if (result == 0 && has_content && names("after sync ", descriptor)) die();
    return result;
}

int fsync(int descriptor) { return synced("fsync", descriptor); }

int fdatasync(int descriptor) { return synced("fdatasync", descriptor); }
