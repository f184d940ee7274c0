#pragma once
#define _GNU_SOURCE
#include "csimulation.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NEVER INT64_MAX

// The function of the next library that has it.
#define REAL(name, version) ({ \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlvsym(RTLD_NEXT, #name, version); \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    real; })

// Whether the simulation runs, and the caller is its thread.
int csim_is_on(void);
void csim_fail(const char *what, const char *detail) __attribute__((noreturn));

// Suspends the calling simulated thread until the time.
void csim_pause_until(int64_t time);
void csim_run_others(int64_t end);
// Lets threads that wait for descriptors ask for them again.
void csim_descriptors_changed(void);

void csim_reset_threads(int machine);
void csim_reset_timers(int machine);
void csim_reset_network(int machine);
void csim_reset_server(int machine);

// Notes that a descriptor belongs to the surroundings.
void csim_disown(int descriptor);
void csim_network_closes(int descriptor);
void csim_disk_closes(int descriptor);
int csim_skips_move(const char *from);
int csim_planted(enum csim_planted_fault fault);
