// Linux calls that Swift's Glibc module leaves out.
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// Declared by glibc under _GNU_SOURCE only.
extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
extern int pthread_setname_np(pthread_t thread, const char *name);
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);

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

// Takes bytes out of a file, which reads as zeros there, and gives their blocks back. FALLOC_FL_PUNCH_HOLE and
// FALLOC_FL_KEEP_SIZE, with fallocate itself, are only declared under _GNU_SOURCE.
static inline int clinux_punch(int file, int64_t offset, int64_t length) {
    return (int)syscall(SYS_fallocate, file, 3, offset, length);
}

// SEEK_DATA and SEEK_HOLE are only declared under _GNU_SOURCE.
static inline int64_t clinux_next_data(int file, int64_t offset) { return lseek(file, offset, 3); }
static inline int64_t clinux_next_hole(int file, int64_t offset) { return lseek(file, offset, 4); }

// O_PATH and O_DIRECT are only declared under _GNU_SOURCE. O_PATH is the same on all architectures that Swift runs on.
static const int clinux_O_PATH = 010000000;
#if defined(__aarch64__) || defined(__arm__)
static const int clinux_O_DIRECT = 0200000;
#else
static const int clinux_O_DIRECT = 040000;
#endif

// Bytes that wait in a socket to be read.
static inline int clinux_unread_bytes(int socket, int *count) { return ioctl(socket, FIONREAD, count); }

// The signal that comes when the parent ends. It is a thread's: another one that runs the program anew would lose it.
static inline int *clinux_parent_death_signal(void) {
    static int number;
    return &number;
}

// Called on the first thread, before `clinux_restart` on any.
static inline int clinux_prepare_restart(void) {
    return prctl(PR_GET_PDEATHSIG, clinux_parent_death_signal());
}

// Runs the program anew in place of this one: with no descriptor but the standard ones, and no signal blocked.
// Returns -1 with errno where it cannot.
static inline int clinux_restart(char *const *arguments) {
    if (prctl(PR_SET_PDEATHSIG, *clinux_parent_death_signal()) != 0) return -1;
    sigset_t signals;
    sigemptyset(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, 0);
    // The program's own descriptors close by themselves; this is for those of libraries, where the kernel (5.11) can.
    (void)syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
    return execv("/proc/self/exe", arguments);
}

// The signals of a fault in the program itself. Never blocked: a fault whose signal is blocked kills without a handler.
enum { clinux_fault_count = 6 };
static const int clinux_faults[clinux_fault_count] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE};

// Blocks all signals but those in the calling thread, and gives their handler a stack of its own there, so that it runs
// where the thread's own stack is used up.
static inline void clinux_block_signals(void) {
    sigset_t signals;
    sigfillset(&signals);
    for (int index = 0; index < clinux_fault_count; index++) sigdelset(&signals, clinux_faults[index]);
    pthread_sigmask(SIG_BLOCK, &signals, 0);
}

static inline void clinux_use_signal_stack(void) {
    static _Thread_local char stack[32768];
    stack_t own;
    memset(&own, 0, sizeof own);
    own.ss_sp = stack;
    own.ss_size = sizeof stack;
    sigaltstack(&own, 0);
}

enum { clinux_mark_path_size = 4096 };

// Where the mark goes: static memory, which a handler may read.
static inline char *clinux_mark_path(void) {
    static char path[clinux_mark_path_size];
    return path;
}

// Leaves a file that holds the signal's number, by calls that a handler may make (signal-safety(7)), and has the signal
// kill. Not what the Swift runtime does instead: its backtrace would keep the service down for a minute.
static inline void clinux_leave_mark(int number) {
    int file = open(clinux_mark_path(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file >= 0) {
        char text[3] = {(char)('0' + number / 10), (char)('0' + number % 10), '\n'};
        if (write(file, text, sizeof text) == (ssize_t)sizeof text) fsync(file);
        close(file);
    }
    // Delivered when this returns, whether a fault or another process sent the first one; by then it is the default's.
    raise(number);
}

// From now on a fault leaves a mark at `path` before it ends the process. Returns 0, or -1 with errno.
static inline int clinux_mark_faults(const char *path) {
    if (strlen(path) >= clinux_mark_path_size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(clinux_mark_path(), path);
    clinux_use_signal_stack();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = clinux_leave_mark;
    action.sa_flags = SA_ONSTACK | (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    for (int index = 0; index < clinux_fault_count; index++)
        if (sigaction(clinux_faults[index], &action, 0) != 0) return -1;
    return 0;
}

// The descriptor that a signal rings, by the signal's number: static memory, which a handler may read.
static inline int *clinux_bell(int number) {
    static int bells[65];
    return &bells[number];
}

// Adds to the eventfd of the signal, by calls that a handler may make (signal-safety(7)).
static inline void clinux_ring(int number) {
    int error = errno;
    uint64_t one = 1;
    if (write(*clinux_bell(number), &one, sizeof one) < 0) {
        // Fails only if the counter is full: the waiting thread is awake by then.
    }
    errno = error;
}

// From now on the signal adds one to an eventfd that is never closed. Returns 0, or -1 with errno.
static inline int clinux_ring_on(int number, int bell) {
    *clinux_bell(number) = bell;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = clinux_ring;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, 0);
}
