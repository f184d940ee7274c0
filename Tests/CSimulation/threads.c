// The program's threads as coroutines on one thread. They change only where a thread waits: for a condition, for
// descriptors, for a time, or for the end of another thread.
#include "internal.h"
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

enum { capacity = 512, stack_size = 1 << 20, local_size = 256 };

enum stage { unused, runnable, waiting, polling, ended };

struct thread {
    enum stage stage;
    ucontext_t context;
    char *stack;
    void *(*body)(void *);
    void *argument;
    char name[16];
    pthread_cond_t *condition;
    int64_t deadline;   // of a wait
    int64_t earliest;   // a runnable thread does not go on before
    int epoll, is_dirty, has_timed_out;
    int machine;
    char locals[local_size];
};

static struct thread threads[capacity];
static int thread_count;
static struct thread *current;
static ucontext_t outside;
static int delay_permille;
static int64_t longest_delay;

static const pthread_t first_handle = 0x510000000000;
extern char __executable_start, etext;

static int is_of_program(const void *address) {
    return (const char *)address >= &__executable_start && (const char *)address < &etext;
}

int csim_is_on_thread(void) { return current != NULL; }
const char *csim_thread_name(int number) { return threads[number].name; }
void csim_set_delays(int permille, int64_t longest) { delay_permille = permille, longest_delay = longest; }

// MARK: Variables of each thread

// The blocks of Swift's runtime: the running task, its executor, and the accesses under way. All are zero at first.
static struct { char *address; size_t size; } blocks[8];
static int block_count = -1;

static int add_block(struct dl_phdr_info *library, size_t size, void *total) {
    (void)size;
    if (!library->dlpi_tls_data || !strstr(library->dlpi_name, "libswift")) return 0;
    for (int index = 0; index < library->dlpi_phnum; index++) {
        if (library->dlpi_phdr[index].p_type != PT_TLS) continue;
        blocks[block_count].address = library->dlpi_tls_data;
        blocks[block_count].size = library->dlpi_phdr[index].p_memsz;
        *(size_t *)total += blocks[block_count++].size;
    }
    return 0;
}

// Exchanges the variables with a copy.
static void exchange_locals(char *copy) {
    if (block_count < 0) {
        size_t total = block_count = 0;
        dl_iterate_phdr(add_block, &total);
        if (total > local_size) csim_fail("variables of threads", "too large");
    }
    for (int index = 0; index < block_count; index++) {
        char before[local_size];
        memcpy(before, blocks[index].address, blocks[index].size);
        memcpy(blocks[index].address, copy, blocks[index].size);
        memcpy(copy, before, blocks[index].size);
        copy += blocks[index].size;
    }
}

// MARK: Changing threads

static void leave(void) {
    struct thread *self = current;
    current = NULL;
    swapcontext(&self->context, &outside);
}

static void run_body(void) {
    current->body(current->argument);
    current->stage = ended;
    leave();
}

void csim_run_thread(int number) {
    struct thread *thread = &threads[number];
    if (thread->stage == waiting) thread->has_timed_out = 1;
    thread->stage = runnable;
    thread->earliest = 0;
    struct thread *caller = current;
    ucontext_t before = outside;
    current = thread;
    int machine = csim_enter(thread->machine);
    exchange_locals(thread->locals);
    swapcontext(&outside, &thread->context);
    exchange_locals(thread->locals);
    csim_enter(machine);
    outside = before;
    current = caller;
    if (thread->stage == ended && thread->stack) {
        munmap(thread->stack, stack_size);
        thread->stack = NULL;
    }
}

void csim_vanish(void) {
    csim_plan_crash(csim_machine(), csim_kill, 0);
    if (!current) csim_fail("csim_vanish", "not on a thread of the program");
    current->stage = ended;
    leave();
    abort();
}

static int is_ready(struct thread *thread) {
    int64_t now = csim_now();
    if (csim_is_paused(thread->machine)) return 0;
    switch (thread->stage) {
    case runnable: return thread->earliest <= now;
    case waiting: return thread->deadline <= now;
    case polling:
        if (thread->deadline <= now) return 1;
        if (!thread->is_dirty) return 0;
        struct pollfd poll = {thread->epoll, POLLIN, 0};
        struct timespec zero = {0, 0};
        thread->is_dirty = syscall(SYS_ppoll, &poll, 1, &zero, NULL, 0) > 0;
        return thread->is_dirty;
    default: return 0;
    }
}

int csim_ready_threads(int *numbers, int limit) {
    int count = 0;
    for (int index = 0; index < thread_count && count < limit; index++)
        if (is_ready(&threads[index])) numbers[count++] = index;
    return count;
}

int64_t csim_next_wakeup(void) {
    int64_t next = NEVER;
    for (int index = 0; index < thread_count; index++) {
        struct thread *thread = &threads[index];
        if (csim_is_paused(thread->machine)) continue;
        int64_t time = thread->stage == runnable ? thread->earliest
            : thread->stage == waiting || thread->stage == polling ? thread->deadline : NEVER;
        if (time < next) next = time;
    }
    return next;
}

static uint64_t activity;

uint64_t csim_network_activity(void) { return activity; }

void csim_descriptors_changed(void) {
    activity++;
    for (int index = 0; index < thread_count; index++) threads[index].is_dirty = 1;
}

void csim_reset_threads(int machine) {
    for (int index = 0; index < thread_count; index++) {
        if (threads[index].machine != machine) continue;
        if (threads[index].stack) munmap(threads[index].stack, stack_size);
        memset(&threads[index], 0, sizeof threads[index]);
    }
    while (thread_count > 0 && threads[thread_count - 1].stage == unused) thread_count--;
}

static void make_runnable(struct thread *thread) {
    thread->stage = runnable;
    thread->condition = NULL;
    thread->earliest = 0;
    if (longest_delay > 0 && csim_below(csim_delays, 1000) < (uint64_t)delay_permille)
        thread->earliest = csim_now() + (int64_t)csim_below(csim_delays, (uint64_t)longest_delay);
}

void csim_pause_until(int64_t time) {
    if (!current) return csim_advance(time);
    current->stage = runnable;
    current->earliest = time;
    leave();
}

// MARK: pthreads

EXPORT int pthread_create(
    pthread_t *restrict handle, const pthread_attr_t *restrict attributes, void *(*body)(void *), void *restrict argument
) {
    if (!csim_is_on()) return REAL(pthread_create, "GLIBC_2.34")(handle, attributes, body, argument);
    if (!is_of_program((const void *)body)) {
        Dl_info place = {0};
        dladdr((const void *)body, &place);
        // libcurl looks a name up by itself if a reused connection turns out dead after the entry of the look-up has
        // expired. The system has no more threads then.
        if (place.dli_fname && strstr(place.dli_fname, "libcurl")) return EAGAIN;
        csim_fail("a library starts a thread", place.dli_fname ? place.dli_fname : "of unknown origin");
    }
    int index = 0;
    while (index < thread_count && threads[index].stage != unused
        && !(threads[index].stage == ended && threads[index].stack == NULL)) index++;
    if (index == capacity) return EAGAIN;
    if (index == thread_count) thread_count++;
    struct thread *thread = &threads[index];
    memset(thread, 0, sizeof *thread);
    thread->stack = mmap(NULL, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (thread->stack == MAP_FAILED) csim_fail("mmap", strerror(errno));
    thread->machine = csim_machine();
    thread->body = body;
    thread->argument = argument;
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = stack_size;
    makecontext(&thread->context, run_body, 0);
    make_runnable(thread);
    *handle = first_handle + (pthread_t)index;
    return 0;
}

static struct thread *thread_of(pthread_t handle) {
    return handle >= first_handle && handle < first_handle + capacity ? &threads[handle - first_handle] : NULL;
}

EXPORT pthread_t pthread_self(void) {
    // The runtimes' own use of it is about the thread that all of these share.
    if (current && is_of_program(__builtin_return_address(0))) return first_handle + (pthread_t)(current - threads);
    return REAL(pthread_self, "GLIBC_2.2.5")();
}

EXPORT int pthread_setname_np(pthread_t handle, const char *name) {
    struct thread *thread = thread_of(handle);
    if (!thread) return REAL(pthread_setname_np, "GLIBC_2.34")(handle, name);
    strncpy(thread->name, name, sizeof thread->name - 1);
    return 0;
}

EXPORT int pthread_getattr_np(pthread_t handle, pthread_attr_t *attributes) {
    if (!current) return REAL(pthread_getattr_np, "GLIBC_2.32")(handle, attributes);
    pthread_attr_init(attributes);
    return pthread_attr_setstack(attributes, current->stack, stack_size);
}

// Signals stay as they are: all of these threads are one.
EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    if (csim_is_on()) return 0;
    return REAL(pthread_sigmask, "GLIBC_2.32")(how, set, old);
}

EXPORT int sigaltstack(const stack_t *restrict stack, stack_t *restrict old) {
    if (csim_is_on()) return 0;
    return (int)syscall(SYS_sigaltstack, stack, old);
}

EXPORT int pthread_detach(pthread_t handle) {
    return thread_of(handle) ? 0 : REAL(pthread_detach, "GLIBC_2.34")(handle);
}

// Runs the other threads until one has ended.
EXPORT int pthread_join(pthread_t handle, void **result) {
    struct thread *thread = thread_of(handle);
    if (!thread) return REAL(pthread_join, "GLIBC_2.34")(handle, result);
    while (thread->stage != ended) {
        int numbers[capacity], count = csim_ready_threads(numbers, capacity);
        if (count > 0) csim_run_thread(numbers[csim_below(csim_order, (uint64_t)count)]);
        else if (csim_next_wakeup() < NEVER) csim_advance(csim_next_wakeup());
        else csim_fail("pthread_join", "no thread goes on");
    }
    return 0;
}

static int wait_for(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline) {
    if (!current) csim_fail("pthread_cond_wait", "a Swift task waits");
    struct thread *self = current;
    self->stage = waiting;
    self->condition = condition;
    self->deadline = deadline;
    self->has_timed_out = 0;
    pthread_mutex_unlock(mutex);
    leave();
    pthread_mutex_lock(mutex);
    return self->has_timed_out ? ETIMEDOUT : 0;
}

EXPORT int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex) {
    if (!csim_is_on()) return REAL(pthread_cond_wait, "GLIBC_2.3.2")(condition, mutex);
    return wait_for(condition, mutex, NEVER);
}

EXPORT int pthread_cond_timedwait(
    pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict time
) {
    if (!csim_is_on()) return REAL(pthread_cond_timedwait, "GLIBC_2.3.2")(condition, mutex, time);
    return wait_for(condition, mutex, (int64_t)time->tv_sec * 1000000000 + time->tv_nsec);
}

static int wake(pthread_cond_t *condition, int wakes_all) {
    int found[capacity], count = 0;
    for (int index = 0; index < thread_count; index++)
        if (threads[index].stage == waiting && threads[index].condition == condition) found[count++] = index;
    if (count == 0 || (csim_planted(csim_lose_wakeup) && csim_below(csim_order, 400) == 0)) return 0;
    if (!wakes_all) make_runnable(&threads[found[csim_below(csim_order, (uint64_t)count)]]);
    else for (int index = 0; index < count; index++) make_runnable(&threads[found[index]]);
    return 0;
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition) {
    if (!csim_is_on()) return REAL(pthread_cond_signal, "GLIBC_2.3.2")(condition);
    return wake(condition, 0);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition) {
    if (!csim_is_on()) return REAL(pthread_cond_broadcast, "GLIBC_2.3.2")(condition);
    return wake(condition, 1);
}

// Suspends the calling thread until a descriptor is readable, or the time.
static void wait_for_descriptor(int descriptor, int64_t deadline) {
    current->stage = polling;
    current->epoll = descriptor;
    current->is_dirty = 1;
    current->deadline = deadline;
    leave();
}

// Runs one step of the other threads or of the server, for a caller that is not on a thread and has to wait, as at the
// start of the program. Without one, the clock is advanced, at most to `end`.
void csim_run_others(int64_t end) {
    int numbers[capacity], count;
    int64_t next = csim_next_service() < csim_next_wakeup() ? csim_next_service() : csim_next_wakeup();
    if ((count = csim_ready_sessions(numbers)) > 0) csim_serve(numbers[csim_below(csim_order, (uint64_t)count)]);
    else if ((count = csim_ready_threads(numbers, capacity)) > 0)
        csim_run_thread(numbers[csim_below(csim_order, (uint64_t)count)]);
    else csim_advance(next < end ? next : end);
}

// Waits for the server of a shared store.
EXPORT int poll(struct pollfd *list, nfds_t count, int timeout) {
    struct timespec zero = {0, 0}, time = {timeout / 1000, timeout % 1000 * 1000000L};
    if (!csim_is_on()) return (int)syscall(SYS_ppoll, list, count, timeout < 0 ? NULL : &time, NULL, 0);
    int64_t deadline = timeout < 0 ? NEVER : csim_now() + (int64_t)timeout * 1000000;
    int found = (int)syscall(SYS_ppoll, list, count, &zero, NULL, 0);
    if (found != 0 || timeout == 0) return found;
    if (count != 1) csim_fail("poll", "several descriptors");
    if (current) wait_for_descriptor(list->fd, deadline);
    while (!current && (found = (int)syscall(SYS_ppoll, list, 1, &zero, NULL, 0)) == 0 && csim_now() < deadline)
        csim_run_others(deadline);
    return (int)syscall(SYS_ppoll, list, 1, &zero, NULL, 0);
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int limit, int timeout) {
    if (current && timeout != 0) {
        wait_for_descriptor(epoll, timeout < 0 ? NEVER : csim_now() + (int64_t)timeout * 1000000);
        timeout = 0;
    }
    int count = (int)syscall(SYS_epoll_pwait, epoll, events, limit, timeout, NULL, 8);
    // The order in which the kernel reports descriptors is not a promise.
    for (int index = count - 1; csim_is_on() && index > 0; index--) {
        int other = (int)csim_below(csim_order, (uint64_t)index + 1);
        struct epoll_event event = events[index];
        events[index] = events[other];
        events[other] = event;
    }
    return count;
}
