/*
 * Makes the sync of a write-ahead log fail with EIO, for as long as a control file exists.
 *
 *   cc -shared -fPIC -O1 -o failing-sync.so failing-sync.c -ldl
 *   FAILING_SYNC_CONTROL=/tmp/x/fail LD_PRELOAD=$PWD/failing-sync.so urlsessiond ...
 *   touch /tmp/x/fail     the next commit's fdatasync or fsync fails
 *   rm /tmp/x/fail        they work again
 *
 * The bytes were written: after the process has gone, the commit may well be found. The invariant is that no caller
 * received success, that the process ended by itself, and that the state after the next start is consistent.
 * FAILING_SYNC_SUFFIX names other files than those that end in "-wal".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int must_fail(int descriptor) {
    const char *control = getenv("FAILING_SYNC_CONTROL");
    if (!control || access(control, F_OK) != 0) return 0;

    const char *suffix = getenv("FAILING_SYNC_SUFFIX");
    if (!suffix) suffix = "-wal";
    char link[64], target[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, target, sizeof target);
    size_t end = strlen(suffix);
    return length >= (ssize_t)end && memcmp(target + length - end, suffix, end) == 0;
}

static int forward(const char *name, int descriptor) {
    int saved = errno;
    if (must_fail(descriptor)) {
        errno = EIO;
        return -1;
    }
    errno = saved;
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(descriptor);
}

int fsync(int descriptor) { return forward("fsync", descriptor); }

int fdatasync(int descriptor) { return forward("fdatasync", descriptor); }
