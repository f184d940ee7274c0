// What the C importer leaves out of <sqlite3.h>: the variadic sqlite3_config and sqlite3_db_config, and SQLITE_TRANSIENT,
// a cast.
#include <sqlite3.h>

/// sqlite3_config with SQLITE_CONFIG_MEMSTATUS, which has to come before anything else of SQLite.
static inline int sqlite3_config_memory_statistics(int on) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, on);
}

/// sqlite3_db_config for the options that take an on/off switch and tell its new state.
static inline int sqlite3_db_config_switch(sqlite3 *connection, int option, int on) {
    return sqlite3_db_config(connection, option, on, (int *)0);
}

/// sqlite3_bind_text64 with a copy of the bytes. No bytes are an empty text, not NULL.
static inline int sqlite3_bind_text_copy(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_text64(statement, index, bytes ? (const char *)bytes : "", count, SQLITE_TRANSIENT, SQLITE_UTF8);
}

/// sqlite3_bind_blob64 with a copy of the bytes. No bytes are an empty blob, not NULL.
static inline int sqlite3_bind_blob_copy(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_blob64(statement, index, bytes ? bytes : "", count, SQLITE_TRANSIENT);
}
