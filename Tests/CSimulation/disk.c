// Files with an unsynced and a synced layer. The folder itself is the unsynced layer; the synced one is in memory.
#include "internal.h"
#include <dirent.h>
#include <ftw.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { descriptors = 4096, buckets = 8192, block = 4096 };

struct name {
    ino_t file;
    char text[96];
};

// The state of a file or folder since it was mounted.
struct file {
    ino_t number;
    int machine, is_folder;
    int is_link;          // a symbolic link, whose text is in `bytes`
    char *bytes;          // synced
    off_t length;
    off_t from, to;       // written since
    struct name *names;   // synced, of a folder
    int name_count;
    int choice;           // of a crash: 0 not made, 1 the synced names, 2 the present ones
    struct file *next;
};

static struct file *files[buckets];
static dev_t device;
static ino_t known[descriptors];   // of a descriptor: 0 unknown, 1 not ours, otherwise the file
static int64_t calls;
static int is_full;

// The disk of each machine.
static struct disk {
    char folder[512], image[512];
    int64_t calls_left;   // up to the crash
    int is_planned, has_crashed;
    enum csim_crash planned;
} disks[csim_machines];

static struct disk *own(void) { return &disks[csim_machine()]; }

static struct { int permillion, error; int64_t met; } faults[csim_disk_calls];
static struct csim_losses losses;

int64_t csim_disk_calls_made(void) { return calls; }
int csim_has_crashed(int machine) { return disks[machine].has_crashed; }
struct csim_losses csim_losses(void) { return losses; }
int64_t csim_faults_met(enum csim_disk_call call) { return faults[call].met; }
void csim_set_full(int now) { is_full = now; }

void csim_set_fault(enum csim_disk_call call, int permillion, int error) {
    faults[call].permillion = permillion;
    faults[call].error = error;
}

// MARK: State

static struct file *find(ino_t number) {
    for (struct file *file = files[number % buckets]; file; file = file->next)
        if (file->number == number) return file;
    return NULL;
}

static struct file *make(ino_t number, int is_folder) {
    struct file *file = calloc(1, sizeof *file);
    file->number = number;
    file->machine = csim_machine();
    file->is_folder = is_folder;
    file->next = files[number % buckets];
    return files[number % buckets] = file;
}

static void forget_files(void) {
    for (int index = 0; index < buckets; index++)
        for (struct file **place = &files[index], *file; (file = *place);) {
            if (file->machine != csim_machine()) {
                place = &file->next;
                continue;
            }
            *place = file->next;
            free(file->bytes);
            free(file->names);
            free(file);
        }
}

static int is_shared_memory(const char *name) {
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, "-shm") == 0;
}

// A symbolic link never changes: with its name its text is on the disk.
static void note_link(int folder, const char *name, ino_t number) {
    struct file *file = find(number);
    if (!file) file = make(number, 0);
    if (file->is_link) return;
    file->is_link = 1;
    file->bytes = calloc(1, 600);
    if (readlinkat(folder, name, file->bytes, 599) < 0) csim_fail("readlinkat", strerror(errno));
}

static int is_link(ino_t number) {
    struct file *file = find(number);
    return file && file->is_link;
}

static void read_names(int descriptor, struct file *file) {
    DIR *list = fdopendir(openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!list) csim_fail("fdopendir", strerror(errno));
    free(file->names);
    file->names = NULL;
    file->name_count = 0;
    struct dirent *entry;
    while ((entry = readdir(list))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || is_shared_memory(entry->d_name))
            continue;
        if (file->name_count % 16 == 0)
            file->names = realloc(file->names, sizeof *file->names * (size_t)(file->name_count + 16));
        struct name *name = &file->names[file->name_count++];
        name->file = entry->d_ino;
        snprintf(name->text, sizeof name->text, "%s", entry->d_name);
        if (entry->d_type == DT_LNK) note_link(dirfd(list), entry->d_name, entry->d_ino);
    }
    closedir(list);
}

// The order in which a folder lists its files depends on when they were made, and is sorted away.
static int compare_names(const void *left, const void *right) {
    return strcmp(((const struct name *)left)->text, ((const struct name *)right)->text);
}

static void sort_names(struct file *file) {
    if (file->name_count > 1) qsort(file->names, (size_t)file->name_count, sizeof *file->names, compare_names);
}

static void copy_synced(int descriptor, struct file *file, off_t length) {
    if (length > file->length) {
        file->bytes = realloc(file->bytes, (size_t)length);
        memset(file->bytes + file->length, 0, (size_t)(length - file->length));
    }
    file->length = length;
    off_t end = file->to < length ? file->to : length;
    for (off_t at = file->from; at < end;) {
        ssize_t count = syscall(SYS_pread64, descriptor, file->bytes + at, (size_t)(end - at), at);
        if (count <= 0) break;
        at += count;
    }
    file->from = file->to = 0;
}

static void learn(const char *path) {
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) != 0) csim_fail(path, strerror(errno));
    struct file *file = make(status.st_ino, S_ISDIR(status.st_mode));
    device = status.st_dev;
    if (file->is_folder) {
        read_names(descriptor, file);
        sort_names(file);
    } else {
        file->to = status.st_size;
        copy_synced(descriptor, file, status.st_size);
    }
    syscall(SYS_close, descriptor);
    for (int index = 0; index < file->name_count; index++) {
        if (is_link(file->names[index].file)) continue;
        char below[1024];
        snprintf(below, sizeof below, "%s/%s", path, file->names[index].text);
        learn(below);
    }
}

void csim_mount(int machine, const char *path, const char *next) {
    int before = csim_enter(machine);
    snprintf(own()->folder, sizeof own()->folder, "%s", path);
    snprintf(own()->image, sizeof own()->image, "%s", next);
    forget_files();
    own()->has_crashed = own()->is_planned = 0;
    learn(path);
    csim_enter(before);
}

void csim_disk_closes(int descriptor) { if (descriptor >= 0 && descriptor < descriptors) known[descriptor] = 0; }

// MARK: Crashes

static int is_in(const struct file *folder, const struct name *name) {
    for (int index = 0; folder && index < folder->name_count; index++)
        if (folder->names[index].file == name->file && strcmp(folder->names[index].text, name->text) == 0) return 1;
    return 0;
}

// Whether the folder has another link of this name, by which one rename replaced it.
static int replaces_link(const struct file *folder, const struct name *name) {
    if (!is_link(name->file)) return 0;
    for (int index = 0; folder && index < folder->name_count; index++)
        if (strcmp(folder->names[index].text, name->text) == 0) return 1;
    return 0;
}

static struct file *present;   // the names of folders now, by their number

static struct file *present_of(ino_t number) {
    for (struct file *file = present; file; file = file->next)
        if (file->number == number) return file;
    return NULL;
}

static void look(const char *path) {
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) != 0) return;
    struct file *now = calloc(1, sizeof *now);
    now->number = status.st_ino;
    read_names(descriptor, now);
    sort_names(now);
    now->next = present;
    present = now;
    syscall(SYS_close, descriptor);
    for (int index = 0; index < now->name_count; index++) {
        if (is_link(now->names[index].file)) continue;
        char below[1024];
        snprintf(below, sizeof below, "%s/%s", path, now->names[index].text);
        look(below);
    }
}

static int keeps_present_names(ino_t number) {
    if (own()->planned == csim_kill) return 1;
    struct file *file = find(number);
    if (!file) file = make(number, 0);
    if (!file->choice) file->choice = 1 + (int)csim_below(csim_disk, 2);
    return file->choice == 2;
}

static int is_of_database(const char *path) { return strstr(path, ".db") != NULL; }

// Leaves a file with these bytes. It stays the same file, by its number, where there is one; but SQLite must not find
// a file again that a connection of the dead process still has.
static void write_file(const char *source, const char *path, const char *bytes, off_t length, int is_as_now) {
    int is_same = source && !is_of_database(path) && link(source, path) == 0;
    if (is_same && is_as_now) return;
    int target = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (target < 0) csim_fail(path, strerror(errno));
    for (off_t at = 0; at < length;) {
        ssize_t count = syscall(SYS_pwrite64, target, bytes + at, (size_t)(length - at), at);
        if (count <= 0) csim_fail(path, strerror(errno));
        at += count;
    }
    syscall(SYS_close, target);
}

// Bytes as they are now, or NULL without a file.
static char *read_present(const char *path, off_t *length) {
    int source = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    struct stat status;
    if (source < 0 || fstat(source, &status) != 0) return NULL;
    *length = status.st_size;
    char *bytes = malloc((size_t)status.st_size + 1);
    for (off_t at = 0; at < status.st_size;) {
        ssize_t count = syscall(SYS_pread64, source, bytes + at, (size_t)(status.st_size - at), at);
        if (count <= 0) break;
        at += count;
    }
    syscall(SYS_close, source);
    return bytes;
}

static void leave_file(ino_t number, const char *source, const char *target) {
    struct file *file = find(number);
    off_t length = 0;
    char *bytes = source ? read_present(source, &length) : NULL;
    if (own()->planned == csim_kill || (file && bytes && file->to == 0 && file->length == length)) {
        write_file(source, target, bytes ? bytes : file->bytes, bytes ? length : file->length, bytes != NULL);
    } else {
        // 0 keeps the bytes written since the last sync, 1 loses them, 2 keeps some of their blocks.
        int fate = bytes ? (int)csim_below(csim_disk, 3) : 1;
        off_t synced = file ? file->length : 0;
        if (fate == 0) losses.kept++, write_file(source, target, bytes, length, 1);
        if (fate == 1) losses.lost++, write_file(source, target, file ? file->bytes : "", synced, 0);
        if (fate == 2) {
            losses.torn++;
            off_t torn = csim_below(csim_disk, 2) ? length : synced;
            char *mixed = calloc(1, (size_t)torn + 1);
            if (file) memcpy(mixed, file->bytes ? file->bytes : "", (size_t)(synced < torn ? synced : torn));
            for (off_t at = 0; at < torn && at < length; at += block) {
                off_t count = torn - at < block ? torn - at : block;
                if (count > length - at) count = length - at;
                if (csim_below(csim_disk, 2)) memcpy(mixed + at, bytes + at, (size_t)count);
            }
            write_file(source, target, mixed, torn, 0);
            free(mixed);
        }
    }
    free(bytes);
}

static void leave_folder(ino_t number, const char *source, const char *target);

static void leave(const struct name *name, const char *source, const char *target, int is_here) {
    char from[1024], to[1024];
    snprintf(from, sizeof from, "%s/%s", source, name->text);
    snprintf(to, sizeof to, "%s/%s", target, name->text);
    struct file *file = find(name->file);
    if (file && file->is_link) {
        if (symlink(file->bytes, to) != 0) csim_fail(to, strerror(errno));
        return;
    }
    if (present_of(name->file) || (file && file->is_folder)) leave_folder(name->file, is_here ? from : "", to);
    else leave_file(name->file, is_here ? from : NULL, to);
}

static void leave_folder(ino_t number, const char *source, const char *target) {
    if (mkdir(target, 0700) != 0) csim_fail(target, strerror(errno));
    struct file *synced = find(number), *now = present_of(number);
    for (int index = 0; now && index < now->name_count; index++) {
        struct name *name = &now->names[index];
        if (is_in(synced, name) || keeps_present_names(name->file)) leave(name, source, target, 1);
        else losses.names++;
    }
    for (int index = 0; own()->planned != csim_kill && synced && index < synced->name_count; index++) {
        struct name *name = &synced->names[index];
        if (is_in(now, name) || (!replaces_link(now, name) && keeps_present_names(name->file))) continue;
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", target, name->text);
        // A newer file of the name that was kept has replaced this one.
        struct stat status;
        if (lstat(path, &status) == 0) continue;
        losses.names++;
        leave(name, source, target, 0);
    }
}

static void crash(void) {
    own()->has_crashed = 1;
    own()->is_planned = 0;
    present = NULL;
    look(own()->folder);
    struct stat status;
    if (stat(own()->folder, &status) != 0) csim_fail(own()->folder, strerror(errno));
    leave_folder(status.st_ino, own()->folder, own()->image);
    while (present) {
        struct file *next = present->next;
        free(present->names);
        free(present);
        present = next;
    }
}

void csim_plan_crash(int machine, enum csim_crash kind, int64_t count) {
    if (disks[machine].has_crashed) return;
    int before = csim_enter(machine);
    own()->planned = kind;
    own()->calls_left = count;
    own()->is_planned = count > 0;
    if (count == 0) crash();
    csim_enter(before);
}

// MARK: Calls

// Whether a file lies in the folder, by its path: files elsewhere belong to other machines.
static int is_within(int descriptor) {
    char link[64], path[600];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t count = readlink(link, path, sizeof path - 1);
    path[count < 0 ? 0 : count] = 0;
    size_t length = strlen(own()->folder);
    return strncmp(path, own()->folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static struct file *ours(int descriptor) {
    if (!csim_is_on() || descriptor < 0 || descriptor >= descriptors || !own()->folder[0]) return NULL;
    if (known[descriptor] == 0) {
        struct stat status;
        known[descriptor] = 1;
        if (fstat(descriptor, &status) != 0 || status.st_dev != device) return NULL;
        if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return NULL;
        if (!is_within(descriptor)) return NULL;
        known[descriptor] = status.st_ino;
        if (!find(status.st_ino)) make(status.st_ino, S_ISDIR(status.st_mode));
    }
    return known[descriptor] == 1 ? NULL : find(known[descriptor]);
}

// Counts a call; returns whether it fails, with errno.
static int fails(enum csim_disk_call call) {
    if (own()->has_crashed) return 0;
    calls++;
    if (own()->is_planned && --own()->calls_left <= 0) crash();
    if (own()->has_crashed || faults[call].permillion == 0) return 0;
    if (csim_below(csim_disk, 1000000) >= (uint64_t)faults[call].permillion) return 0;
    faults[call].met++;
    errno = faults[call].error;
    return 1;
}

static void note_write(struct file *file, off_t from, off_t to) {
    if (own()->has_crashed) return;
    if (file->to == 0) file->from = from;
    if (from < file->from) file->from = from;
    if (to > file->to) file->to = to;
}

static int is_database(int descriptor) {
    char link[64], path[600];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t count = readlink(link, path, sizeof path - 1);
    path[count < 0 ? 0 : count] = 0;
    return strstr(path, ".db") != NULL;
}

static ssize_t write_at(int descriptor, const void *bytes, size_t count, off_t offset) {
    struct file *file = ours(descriptor);
    if (!file) return syscall(SYS_pwrite64, descriptor, bytes, count, offset);
    if (fails(csim_write)) return -1;
    // The image has the same files as the folder, but for the database's.
    if (own()->has_crashed && !is_database(descriptor)) return (ssize_t)count;
    if (is_full) {
        struct stat status;
        if (fstat(descriptor, &status) == 0 && offset + (off_t)count > status.st_size) {
            errno = ENOSPC;
            return -1;
        }
    }
    if (csim_planted(csim_misplace_write) && offset > 0 && csim_below(csim_disk, 60) == 0 && !is_database(descriptor))
        offset -= 1;
    int loses = csim_planted(csim_shorten_write) && count > 1 && !is_database(descriptor)
        && csim_below(csim_disk, 60) == 0;
    ssize_t written = syscall(SYS_pwrite64, descriptor, bytes, count - loses, offset);
    if (written > 0) note_write(file, offset, offset + written);
    return written > 0 ? written + loses : written;
}

EXPORT ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    return write_at(descriptor, bytes, count, offset);
}

EXPORT ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    return write_at(descriptor, bytes, count, offset);
}

EXPORT ssize_t write(int descriptor, const void *bytes, size_t count) {
    struct file *file = ours(descriptor);
    if (file) {
        off_t offset = lseek(descriptor, 0, SEEK_CUR);
        ssize_t written = write_at(descriptor, bytes, count, offset);
        if (written > 0) lseek(descriptor, offset + written, SEEK_SET);
        return written;
    }
    if (csim_is_on()) csim_descriptors_changed();
    return syscall(SYS_write, descriptor, bytes, count);
}

ssize_t csim_pread(int descriptor, void *bytes, size_t count, off_t offset) {
    return syscall(SYS_pread64, descriptor, bytes, count, offset);
}

// Reads are not counted as calls, because a crash between two reads is one between the calls beside them.
static int fails_to_read(int descriptor) {
    if (faults[csim_read].permillion == 0 || !ours(descriptor) || own()->has_crashed) return 0;
    if (csim_below(csim_reads, 1000000) >= (uint64_t)faults[csim_read].permillion) return 0;
    faults[csim_read].met++;
    errno = faults[csim_read].error;
    return 1;
}

EXPORT ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) {
    return fails_to_read(descriptor) ? -1 : csim_pread(descriptor, bytes, count, offset);
}

EXPORT ssize_t pread64(int descriptor, void *bytes, size_t count, off64_t offset) {
    return fails_to_read(descriptor) ? -1 : csim_pread(descriptor, bytes, count, offset);
}

static int truncate_to(int descriptor, off_t length) {
    struct file *file = ours(descriptor);
    if (file && fails(csim_write)) return -1;
    if (file && own()->has_crashed && !is_database(descriptor)) return 0;
    int result = (int)syscall(SYS_ftruncate, descriptor, length);
    if (file && result == 0) note_write(file, length, length + 1);
    return result;
}

EXPORT int ftruncate(int descriptor, off_t length) { return truncate_to(descriptor, length); }
EXPORT int ftruncate64(int descriptor, off64_t length) { return truncate_to(descriptor, length); }

static int sync_now(int descriptor) {
    struct file *file = ours(descriptor);
    if (!file) return csim_is_on() ? 0 : (int)syscall(SYS_fsync, descriptor);
    if (fails(csim_sync)) {
        // The kernel drops unwritable pages, and reports that once.
        file->from = file->to = 0;
        return -1;
    }
    if (own()->has_crashed) return 0;
    if (file->is_folder) {
        if (csim_planted(csim_skip_folder_sync)) return 0;
        read_names(descriptor, file);
        sort_names(file);
        return 0;
    }
    if (csim_planted(csim_skip_file_sync) && !is_database(descriptor)) return 0;
    if (csim_planted(csim_skip_commit_sync) && is_database(descriptor)) return 0;
    struct stat status;
    if (fstat(descriptor, &status) != 0) return -1;
    copy_synced(descriptor, file, status.st_size);
    return 0;
}

EXPORT int fsync(int descriptor) { return sync_now(descriptor); }
EXPORT int fdatasync(int descriptor) { return sync_now(descriptor); }

// Whether the planted fault makes the program believe that a name of the folder has changed. One of four.
static int skips(enum csim_planted_fault fault, const char *path) {
    return csim_planted(fault) && csim_is_on() && !own()->has_crashed && own()->folder[0] && !strstr(path, ".db")
        && csim_below(csim_disk, 4) == 0;
}

EXPORT int unlink(const char *path) {
    return skips(csim_skip_removal, path) ? 0 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int csim_skips_move(const char *from) { return skips(csim_skip_move, from); }

EXPORT int statvfs(const char *restrict path, struct statvfs *restrict status) {
    (void)path;
    memset(status, 0, sizeof *status);
    status->f_bsize = status->f_frsize = 4096;
    status->f_blocks = 1 << 28;
    status->f_bavail = status->f_bfree = is_full ? 0 : 1 << 27;
    return 0;
}

EXPORT int close(int descriptor) {
    csim_network_closes(descriptor);
    csim_disk_closes(descriptor);
    return (int)syscall(SYS_close, descriptor);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status, (void)kind, (void)place;
    return remove(path);
}

void csim_remove(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }
