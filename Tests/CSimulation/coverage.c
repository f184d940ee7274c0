// The states that rows of the database pass through, as a hook of SQLite sees them.
#include "internal.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_value sqlite3_value;
extern int sqlite3_auto_extension(void (*entry)(void));
extern void *sqlite3_preupdate_hook(
    sqlite3 *, void (*)(void *, sqlite3 *, int, const char *, const char *, int64_t, int64_t), void *);
extern int sqlite3_preupdate_old(sqlite3 *, int, sqlite3_value **);
extern int sqlite3_preupdate_new(sqlite3 *, int, sqlite3_value **);
extern int sqlite3_preupdate_count(sqlite3 *);
extern int sqlite3_value_type(sqlite3_value *);
extern const unsigned char *sqlite3_value_text(sqlite3_value *);

enum { insert = 18, delete = 9, text = 3, most = 256 };

static const char *const words[][12] = {
    {"live", "suspended", "delayed", "queued", "active", "retryWait", "waitingForConnectivity", "awaitingAnswer",
     "quarantined", "waitingForDisk", "following"},
    {"launch", "pending", "delivering", "launched", "parked", "completed", "superseded", "exhausted"},
    {"question", "open", "answered", "expired"},
    {"session", "active", "invalidating", "invalid"},
    {"set_version", "expanding", "fetching", "verifying", "publishing", "published", "failed", "superseded",
     "cancelled"},
};

static struct { char name[96]; int64_t count; } transitions[most];
static int transition_count;

static const char *state(
    sqlite3 *db, const char *const *list, int (*get)(sqlite3 *, int, sqlite3_value **)
) {
    for (int column = 0; column < sqlite3_preupdate_count(db); column++) {
        sqlite3_value *value = NULL;
        if (get(db, column, &value) != 0 || !value || sqlite3_value_type(value) != text) continue;
        const char *found = (const char *)sqlite3_value_text(value);
        for (int index = 1; index < 12 && list[index]; index++)
            if (strcmp(found, list[index]) == 0) return list[index];
    }
    return "";
}

static void changed(
    void *context, sqlite3 *db, int operation, const char *schema, const char *table, int64_t old, int64_t new
) {
    (void)context, (void)schema, (void)old, (void)new;
    for (size_t index = 0; index < sizeof words / sizeof *words; index++) {
        if (strcmp(table, words[index][0]) != 0) continue;
        const char *from = operation == insert ? "" : state(db, words[index], sqlite3_preupdate_old);
        const char *to = operation == delete ? "" : state(db, words[index], sqlite3_preupdate_new);
        if (strcmp(from, to) == 0) return;
        char name[96];
        snprintf(name, sizeof name, "%s: %s -> %s", table, *from ? from : "new", *to ? to : "gone");
        int found = 0;
        while (found < transition_count && strcmp(transitions[found].name, name) != 0) found++;
        if (found == most) return;
        if (found == transition_count) strcpy(transitions[transition_count++].name, name);
        transitions[found].count++;
    }
}

static int watch(sqlite3 *db, char **error, const void *api) {
    (void)error, (void)api;
    sqlite3_preupdate_hook(db, changed, NULL);
    return 0;
}

void csim_watch_states(void) { sqlite3_auto_extension((void (*)(void))watch); }

int csim_transition(int index, const char **name, int64_t *count) {
    if (index >= transition_count) return 0;
    *name = transitions[index].name;
    *count = transitions[index].count;
    return 1;
}
