// Linux calls that Swift's Glibc module leaves out.
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// Declared by glibc under _GNU_SOURCE only.
extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
extern int pthread_setname_np(pthread_t thread, const char *name);

// glibc 2.36 has no wrapper for openat2. Returns a descriptor, or -1 with errno.
static inline int clinux_open_beneath(int folder, const char *path, int flags, unsigned mode) {
    struct open_how how;
    memset(&how, 0, sizeof how);
    how.flags = (uint64_t)(unsigned)flags;
    how.mode = mode;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

// renameat2 is only declared under _GNU_SOURCE.
static inline int clinux_rename(int from_folder, const char *from, int to_folder, const char *to, int replace) {
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, replace ? 0u : 1u /* RENAME_NOREPLACE */);
}

// Makes `to` share the blocks of `from`: instant where the filesystem can (btrfs, XFS), else -1 with errno.
static inline int clinux_clone(int to, int from) { return ioctl(to, FICLONE, from); }

static inline long clinux_copy_range(int from, int to, size_t count) {
    return syscall(SYS_copy_file_range, from, (void *)0, to, (void *)0, count, 0u);
}

// O_PATH is only declared under _GNU_SOURCE: 010000000 on all architectures that Swift runs on.
static const int clinux_O_PATH = 010000000;

// Bytes that wait in a socket to be read.
static inline int clinux_unread_bytes(int socket, int *count) { return ioctl(socket, FIONREAD, count); }
