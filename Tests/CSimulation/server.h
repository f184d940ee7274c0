// The simulated PostgreSQL server: what its parts share. `libpq.c` has the functions that the program calls, `server.c`
// the sessions and their transactions, `statements.c` the statements and their values.
#pragma once
#include "internal.h"
#include <postgresql/libpq-fe.h>
#include <sqlite3.h>

enum { session_limit = 128, parameter_limit = 64, column_limit = 96 };
enum { type_bytes = 17, type_integer = 20, type_text = 25, type_double = 701 };
enum { array_of_bytes = 1001, array_of_texts = 1009, array_of_integers = 1016, array_of_doubles = 1022 };

enum kind {
    kind_query, kind_begin, kind_begin_reading, kind_commit, kind_rollback, kind_lock, kind_setting, kind_sign,
    kind_numbers
};

// A prepared statement.
struct statement {
    char name[24];
    enum kind kind;
    char *sql;                       // in SQLite's dialect
    int is_list, is_numbered;        // one execution for each element of the parameters
    Oid types[parameter_limit];
    sqlite3_stmt *compiled;
    int has_shape;
    Oid shape[column_limit];         // the types of the columns, which the program reads once: of numbers alone
    struct statement *next;
};

struct parameter {
    char *bytes;   // NULL for NULL
    int length;
};

enum call { call_prepare, call_execute, call_sync };

struct message {
    enum call call;
    struct statement *statement;
    struct parameter parameters[parameter_limit];
    int count;
    struct message *next;
};

struct cell {
    char *bytes;   // NULL for NULL
    int length;
};

struct pg_result {
    ExecStatusType status;
    char state[6];
    char *message;
    int columns, rows;
    char **names;
    Oid types[column_limit];
    struct cell *cells;
    char changes[24];
    int is_end;   // of the results of one statement
    struct pg_result *next;
};

struct pg_conn {
    int socket, peer, machine;
    sqlite3 *db;
    int is_lost;
    int is_in_transaction, is_reading, has_begun, has_failed;
    int skips;              // after an error, up to the next sync
    int is_blocked;
    int64_t began, idle_since, patience, patience_since;
    int64_t due;            // when the server receives the first message
    struct message *unsent, *queue;
    struct pg_result *results;
    struct statement *statements;
    char error[200];
};

// The sessions with the program; NULL where there is none.
extern struct pg_conn *server_sessions[session_limit];
sqlite3 *server_open(void);
int server_is_away(void);
// Ends the server's side of a session.
void server_lose(struct pg_conn *session);
void server_free(struct message *message);
// Executes one message; NULL if it waits for the lock.
struct pg_result *server_execute(struct pg_conn *session, struct message *message);

struct pg_result *server_result(ExecStatusType status);
struct pg_result *server_error(const char *state, const char *message);

// Prepares a statement of the program.
void server_translate(struct statement *statement, const char *sql);
int server_starts(const char *text, const char *word);
uint64_t server_number(const char *bytes, int count);
// Runs a statement once for each list of its values.
struct pg_result *server_query(struct pg_conn *session, struct message *message);
struct pg_result *server_draw_numbers(struct pg_conn *session, struct message *message);
