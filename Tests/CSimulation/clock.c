// Time and randomness.
#include "internal.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/personality.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static int is_on;
static pid_t thread;
static int64_t now_ns, wall_ns;
static uint64_t states[csim_streams];
static enum csim_planted_fault planted;
static int machine, paused[csim_machines];

void csim_fail(const char *what, const char *detail) {
    fprintf(stderr, "simulation: %s: %s\n", what, detail);
    abort();
}

int csim_is_on(void) { return is_on && (pid_t)syscall(SYS_gettid) == thread; }

int csim_machine(void) { return machine; }
void csim_set_paused(int number, int is_paused) { paused[number] = is_paused; }
int csim_is_paused(int number) { return paused[number]; }

int csim_enter(int next) {
    int before = machine;
    machine = next;
    return before;
}

void csim_plant(enum csim_planted_fault fault) { planted = fault; }
int csim_planted(enum csim_planted_fault fault) { return planted == fault; }

void csim_begin(uint64_t seed) {
    thread = (pid_t)syscall(SYS_gettid);
    for (int stream = 0; stream < csim_streams; stream++)
        states[stream] = (seed + 1) * 0x9E3779B97F4A7C15u + (uint64_t)stream * 0xD1342543DE82EF95u;
    now_ns = 1000000000000;
    wall_ns = 1790000000000000000 - now_ns;
    is_on = 1;
}

// SplitMix64.
uint64_t csim_draw(int stream) {
    uint64_t z = (states[stream] += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t csim_below(int stream, uint64_t limit) { return csim_draw(stream) % limit; }

int64_t csim_now(void) { return now_ns; }
void csim_advance(int64_t to) { if (to > now_ns) now_ns = to; }
void csim_shift_wall_clock(int64_t nanoseconds) { wall_ns += nanoseconds; }

int64_t csim_real_now(void) {
    struct timespec time;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void split(int64_t ns, struct timespec *time) {
    time->tv_sec = ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!is_on) return (int)syscall(SYS_clock_gettime, clock, time);
    split(clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? now_ns + wall_ns : now_ns, time);
    return 0;
}

EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

EXPORT time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

EXPORT int nanosleep(const struct timespec *length, struct timespec *rest) {
    if (!csim_is_on()) return (int)syscall(SYS_nanosleep, length, rest);
    csim_pause_until(now_ns + (int64_t)length->tv_sec * 1000000000 + length->tv_nsec);
    return 0;
}

EXPORT int usleep(useconds_t length) {
    struct timespec time = {length / 1000000, (long)(length % 1000000) * 1000};
    return nanosleep(&time, NULL);
}

// MARK: Timers

struct timer {
    int64_t time;
    uint64_t number;
    int machine;
    void *context;
    void (*work)(void *);
};

static struct timer *timers;
static size_t timer_count, timer_capacity;
static uint64_t last_timer;

// The earliest timer of a machine that is not paused; NULL without one.
static struct timer *earliest(void) {
    struct timer *found = NULL;
    for (struct timer *timer = timers; timer < timers + timer_count; timer++) {
        if (paused[timer->machine]) continue;
        if (!found || timer->time < found->time || (timer->time == found->time && timer->number < found->number))
            found = timer;
    }
    return found;
}

int64_t csim_next_timer(void) {
    struct timer *timer = earliest();
    return timer ? timer->time : NEVER;
}

void csim_fire_timer(void) {
    struct timer *first = earliest(), timer = *first;
    *first = timers[--timer_count];
    int before = csim_enter(timer.machine);
    timer.work(timer.context);
    csim_enter(before);
}

void csim_reset_timers(int number) {
    size_t kept = 0;
    for (size_t index = 0; index < timer_count; index++)
        if (timers[index].machine != number) timers[kept++] = timers[index];
    timer_count = kept;
}

static void add_timer(uint64_t when, void *context, void (*work)(void *)) {
    if (!csim_is_on()) csim_fail("a timer of libdispatch", "outside the simulation");
    // A time of libdispatch has its clock in the two highest bits: both for the wall clock.
    if (when >> 62 == 3) csim_fail("a timer of libdispatch", "of the wall clock");
    if (csim_planted(csim_lose_timer) && csim_below(csim_order, 200) == 0) return;
    if (timer_count == timer_capacity) {
        timer_capacity = timer_capacity ? 2 * timer_capacity : 64;
        timers = realloc(timers, timer_capacity * sizeof *timers);
    }
    timers[timer_count++] = (struct timer){(int64_t)(when & ~(3ull << 62)), ++last_timer, machine, context, work};
}

// Swift's runtime sleeps through this function, and through the next ones where the sleep may be longer.
EXPORT void dispatch_after_f(uint64_t when, void *queue, void *context, void (*work)(void *)) {
    (void)queue;
    add_timer(when, context, work);
}

struct source {
    uint64_t when;
    void *context;
    void (*work)(void *);
};

EXPORT void *dispatch_source_create(const void *type, uintptr_t handle, unsigned long mask, void *queue) {
    (void)type, (void)handle, (void)mask, (void)queue;
    return calloc(1, sizeof(struct source));
}

EXPORT void dispatch_source_set_timer(void *source, uint64_t when, uint64_t interval, uint64_t leeway) {
    (void)interval, (void)leeway;
    ((struct source *)source)->when = when;
}

EXPORT void dispatch_set_context(void *source, void *context) { ((struct source *)source)->context = context; }

EXPORT void dispatch_source_set_event_handler_f(void *source, void (*work)(void *)) {
    ((struct source *)source)->work = work;
}

EXPORT void dispatch_activate(void *source) {
    add_timer(((struct source *)source)->when, ((struct source *)source)->context, ((struct source *)source)->work);
}

// A queue is never asked for more than its number. To change its width would start a thread.
EXPORT void *dispatch_queue_create(const char *name, void *attributes) {
    (void)name, (void)attributes;
    return calloc(1, 64);
}

EXPORT void dispatch_queue_set_width(void *queue, long width) { (void)queue, (void)width; }
EXPORT void dispatch_release(void *object) { (void)object; }

EXPORT void dispatch_async_f(void *queue, void *context, void (*work)(void *)) {
    (void)queue, (void)context, (void)work;
    csim_fail("dispatch_async_f", "a Swift task runs outside the simulation's executors");
}

// MARK: Randomness

static void fill(void *bytes, size_t count) {
    unsigned char *next = bytes;
    while (count > 0) {
        uint64_t number = csim_draw(csim_entropy);
        size_t length = count < sizeof number ? count : sizeof number;
        memcpy(next, &number, length);
        next += length;
        count -= length;
    }
}

EXPORT ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
    if (!is_on) return syscall(SYS_getrandom, bytes, count, flags);
    fill(bytes, count);
    return (ssize_t)count;
}

EXPORT void swift_stdlib_random(void *bytes, size_t count) {
    if (getrandom(bytes, count, 0) != (ssize_t)count) csim_fail("getrandom", strerror(errno));
}

// Swift's runtime asks the kernel for randomness itself; the service moves files with renameat2.
EXPORT long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    va_list list;
    long given[6];
    va_start(list, number);
    for (int index = 0; index < 6; index++) given[index] = va_arg(list, long);
    va_end(list);
    if (number == SYS_getrandom && is_on) {
        fill((void *)given[0], (size_t)given[1]);
        return given[1];
    }
    if (number == SYS_renameat2 && csim_skips_move((const char *)given[1])) return 0;
    return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

EXPORT int gnutls_rnd(int level, void *bytes, size_t count) {
    (void)level;
    return getrandom(bytes, count, 0) == (ssize_t)count ? 0 : -1;
}

// MARK: Processes

pid_t csim_fork(void) { return fork(); }

void csim_fix_addresses(char *const *arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    int current = personality(0xFFFFFFFF);
    if (getenv("SWIFT_DETERMINISTIC_HASHING") && current & ADDR_NO_RANDOMIZE) return;
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1);
    setenv("SWIFT_BACKTRACE", "enable=no", 1);
    personality((unsigned long)current | ADDR_NO_RANDOMIZE);
    execv("/proc/self/exe", arguments);
    csim_fail("execv", strerror(errno));
}
