// One thread, one clock and one seed for a whole process: the C library's calls for time, randomness, threads, sockets
// and files, as this executable defines them in place of libc's. A program that links this target is simulated between
// `csim_begin` and its end; before that, and in every other program, the calls reach the system.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// MARK: The world

enum csim_stream {
    csim_order,      // which job, thread or timer runs next
    csim_delays,     // how long threads and look-ups take
    csim_entropy,    // what the program itself reads as randomness
    csim_disk,       // what a crash keeps, and which calls fail
    csim_network,    // origins and receivers
    csim_clients,    // what clients do
    csim_plan,       // what kind of run this is
    csim_stores,     // caches and buckets: whether a run has them, and their behaviour
    csim_database,   // the server of a shared store
    csim_readers,    // readers of unfinished contents
    csim_reads,      // which reads of files fail
    csim_extras,     // fetches, and tasks that crash the program
    csim_streams
};

// Begins a simulated life of this process. Called once, on the thread that simulates.
void csim_begin(uint64_t seed);
uint64_t csim_draw(int stream);
// A number below `limit`, which is above zero.
uint64_t csim_below(int stream, uint64_t limit);

// MARK: Machines

// Programs run on machines 1, 2, …; 0 are their surroundings. Threads, timers, descriptors and files belong to the
// machine whose code creates them.
enum { csim_machines = 4 };
int csim_machine(void);
// Continues as a machine; returns the one before.
int csim_enter(int machine);
// A paused machine runs nothing.
void csim_set_paused(int machine, int is_paused);
int csim_is_paused(int machine);

// MARK: Time

// Nanoseconds of the monotonic clock; of the system's own clock; what the wall clock is ahead of the monotonic one.
int64_t csim_now(void);
int64_t csim_real_now(void);
void csim_advance(int64_t to);
void csim_shift_wall_clock(int64_t nanoseconds);
// The earliest timer of libdispatch, which Swift's sleeping tasks use; INT64_MAX without one.
int64_t csim_next_timer(void);
// Runs the earliest timer, which is due.
void csim_fire_timer(void);

// MARK: Threads

// Writes the numbers of the threads that can go on now; returns their count.
int csim_ready_threads(int *numbers, int capacity);
// When a thread that waits can go on by itself; INT64_MAX if none can.
int64_t csim_next_wakeup(void);
// Runs a thread until it waits.
void csim_run_thread(int number);
const char *csim_thread_name(int number);
// Whether the caller runs on one of the simulated threads.
int csim_is_on_thread(void);
// Ends the calling thread, or rather never continues it, and reports a crash.
void csim_vanish(void) __attribute__((noreturn));
// A woken thread continues later with this probability (per mille), by at most so many nanoseconds.
void csim_set_delays(int permille, int64_t longest);

// MARK: Network

struct csim_connection {
    int socket, peer;
    uint32_t address;
    uint16_t port;
    int machine, generation;   // of the program that asked
};

// The number of a machine's programs that were buried.
int csim_generation(int machine);

// The next connection that the program asked for; whether there is one.
int csim_next_connection(struct csim_connection *connection);
void csim_accept(const struct csim_connection *connection);
void csim_refuse(const struct csim_connection *connection, int error);
// Bytes from and to the peer of a socket; -1 at its end or error, 0 if there are none or no room for any now.
ssize_t csim_receive(int peer, void *bytes, size_t count);
ssize_t csim_send(int peer, const void *bytes, size_t count);
// Ends the peer's side: as an end of the stream, or as a reset.
void csim_hang_up(const struct csim_connection *connection, int resets);
// A number that changes with whatever the program does to a connection, and with the peers' bytes.
uint64_t csim_network_activity(void);
// What `getaddrinfo` answers: called on the thread that asks. Returns 0 with an address, or an error of `getaddrinfo`.
void csim_set_resolver(int (*resolve)(const char *name, uint32_t *address));

// MARK: The server of a shared store

// Accepts connections of libpq from now on, for a database that has the service's schema.
void csim_start_server(const char *path);
// Lets a connection be lost with this probability (per mille) in each round trip, and four times as often in a commit.
void csim_set_losses(int permille);
// Ends all sessions; while the server is away, it accepts none.
void csim_restart_server(int is_away);
// Writes the numbers of the sessions that the server can attend to now, at most 128; returns their count.
int csim_ready_sessions(int *numbers);
// When the next session can be attended to; INT64_MAX for none.
int64_t csim_next_service(void);
void csim_serve(int number);

// MARK: Disk

enum csim_disk_call { csim_write, csim_sync, csim_read, csim_disk_calls };
enum csim_crash { csim_kill, csim_power_cut };

// The folder that is a machine's disk; existing files count as synced. A crash leaves the remaining files in `image`.
void csim_mount(int machine, const char *folder, const char *image);
// The number of calls so far that change or sync a file of the folder.
int64_t csim_disk_calls_made(void);
// Lets a machine crash after so many more of its calls, or now with 0. Builds the image at that moment.
void csim_plan_crash(int machine, enum csim_crash kind, int64_t count);
// Whether the crash has come: everything the machine has done since is not real.
int csim_has_crashed(int machine);
// Forgets threads, timers, descriptors and files of a machine that crashed.
void csim_bury(int machine);
// Lets the calls of one kind fail with `error`, with this probability (per million).
void csim_set_fault(enum csim_disk_call call, int permillion, int error);
int64_t csim_faults_met(enum csim_disk_call call);
// `pread` without faults, for the simulator itself.
ssize_t csim_pread(int descriptor, void *bytes, size_t count, off_t offset);
// What the filesystem reports as free, and whether writes fail with ENOSPC.
void csim_set_full(int is_full);
// What the last crash did: files whose unsynced bytes were kept, lost, torn; names that were lost or came back.
struct csim_losses { int64_t kept, lost, torn, names; };
struct csim_losses csim_losses(void);

// A fault planted into the calls, to see whether it is found.
enum csim_planted_fault {
    csim_plant_nothing,
    csim_lose_wakeup,        // of a thread, now and then
    csim_lose_timer,
    csim_lose_event,         // of an eventfd
    csim_skip_file_sync,
    csim_skip_folder_sync,
    csim_skip_commit_sync,   // of the database's files
    csim_misplace_write,     // by one byte, of a file that is not the database's
    csim_shorten_write,      // by one byte, which is reported as written
    csim_skip_removal,       // of a file of the folder
    csim_skip_move,          // of a file within the folder
    csim_skip_fence,         // of a node whose place another process has
    csim_skip_turn,          // of nodes that write: the lock is taken with the first write only
    csim_undo_commit,        // now and then, although the server confirms it
    csim_misreport_commit    // as the outcome of a commit in doubt
};
void csim_plant(enum csim_planted_fault fault);

// MARK: Processes

// `fork`: returns the child's number in the parent, 0 in the child.
pid_t csim_fork(void);
// Runs the program anew with the same addresses each time, unless it runs so already.
void csim_fix_addresses(char *const *arguments);
// Removes a folder with all that is in it.
void csim_remove(const char *folder);

// MARK: Coverage

// Counts the changes of state of the rows in databases that are opened from now on.
void csim_watch_states(void);
// A change of state and how often it came; whether there is one of that index.
int csim_transition(int index, const char **name, int64_t *count);
