// A PostgreSQL server as the program sees it: the functions of libpq over one SQLite database, whose schema is that of
// the service. Statements come in the service's common dialect, and are translated back from PostgreSQL's.
//
// Simulated are sessions, pipelines and their errors, the transactions and the lock that nodes write in turns under,
// time limits, and lost connections: before a commit, or after it and before its response.
#include "server.h"
#include <sys/socket.h>

struct pg_conn *server_sessions[session_limit];
static struct pg_conn *writer;   // that holds the lock
static char place[512];
static int is_away, loss_permille;

void csim_set_losses(int permille) { loss_permille = permille; }
int server_is_away(void) { return is_away; }

// MARK: The database

static void now(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count, (void)values;
    sqlite3_result_double(context, (double)csim_now() / 1e9);
}

sqlite3 *server_open(void) {
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(place, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        csim_fail(place, sqlite3_errmsg(db));
    sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON", NULL, NULL, NULL);
    sqlite3_create_function(db, "now", 0, SQLITE_UTF8, NULL, now, NULL, NULL);
    return db;
}

static void run(struct pg_conn *session, const char *sql) {
    char *error = NULL;
    if (sqlite3_exec(session->db, sql, NULL, NULL, &error) != SQLITE_OK) csim_fail(sql, error);
}

// Adds the tables that only a server's store has.
void csim_start_server(const char *path) {
    snprintf(place, sizeof place, "%s", path);
    struct pg_conn session = {.db = server_open()};
    run(&session, "CREATE TABLE node (id TEXT PRIMARY KEY, epoch INTEGER NOT NULL, committed INTEGER NOT NULL DEFAULT 0, "
        "lease_until REAL NOT NULL, contents TEXT, document BLOB, draining INTEGER NOT NULL DEFAULT FALSE);"
        "CREATE TABLE schema_version AS SELECT user_version AS version FROM pragma_user_version");
    sqlite3_close(session.db);
}

// MARK: Transactions

static void end_transaction(struct pg_conn *session, const char *sql) {
    for (struct statement *statement = session->statements; statement; statement = statement->next)
        if (statement->compiled) sqlite3_reset(statement->compiled);
    if (session->has_begun) run(session, sql);
    if (writer == session) writer = NULL;
    session->is_in_transaction = session->is_reading = session->has_begun = session->has_failed = 0;
}

static void set_patience(struct pg_conn *session, struct message *message) {
    struct parameter *given = &message->parameters[0];
    int64_t limit = message->statement->types[0] == type_integer
        ? (int64_t)server_number(given->bytes, 8) - (csim_now() - session->began) / 1000000 : atoll(given->bytes);
    session->patience = (limit > 1 ? limit : 1) * 1000000;
}

// Executes one message; NULL if it waits for the lock.
struct pg_result *server_execute(struct pg_conn *session, struct message *message) {
    struct statement *statement = message->statement;
    if (statement->kind == kind_rollback) {
        end_transaction(session, "ROLLBACK");
        return server_result(PGRES_COMMAND_OK);
    }
    if (session->has_failed) return server_error("25P02", "current transaction is aborted");
    int waits = statement->kind == kind_lock && !csim_planted(csim_skip_turn);
    int writes = waits || statement->kind == kind_sign
        || (statement->kind == kind_query && session->is_in_transaction && !session->is_reading
            && !server_starts(statement->sql, "SELECT") && !server_starts(statement->sql, "WITH RECURSIVE"));
    if (writes && !session->is_reading) {
        if (writer && writer != session) {
            if (!session->is_blocked) session->patience_since = csim_now();
            session->is_blocked = 1;
            if (csim_now() - session->patience_since < session->patience) return NULL;
            session->is_blocked = 0;
            return server_error("55P03", "canceling statement due to lock timeout");
        }
        session->is_blocked = 0;
        if (!session->has_begun) run(session, "BEGIN IMMEDIATE");
        session->has_begun = 1;
        writer = session;
    }
    switch (statement->kind) {
    case kind_begin:
    case kind_begin_reading:
        session->is_in_transaction = 1;
        session->is_reading = statement->kind == kind_begin_reading;
        session->began = csim_now();
        session->patience = NEVER / 2;
        if (session->is_reading) run(session, "BEGIN");
        session->has_begun = session->is_reading;
        return server_result(PGRES_COMMAND_OK);
    case kind_commit:
        end_transaction(
            session, csim_planted(csim_undo_commit) && csim_below(csim_database, 60) == 0 ? "ROLLBACK" : "COMMIT");
        return server_result(PGRES_COMMAND_OK);
    case kind_lock: return server_result(PGRES_COMMAND_OK);
    case kind_setting:
        set_patience(session, message);
        return server_result(PGRES_COMMAND_OK);
    case kind_numbers: return server_draw_numbers(session, message);
    case kind_sign: {
        struct pg_result *result = server_query(session, message);
        if (result->status != PGRES_COMMAND_OK || strcmp(result->changes, "0") != 0 || csim_planted(csim_skip_fence))
            return result;
        PQclear(result);
        return server_error("22012", "division by zero");
    }
    default: return server_query(session, message);
    }
}

// MARK: Sessions

static void server_put(struct pg_conn *session, struct pg_result *result) {
    struct pg_result **end = &session->results;
    while (*end) end = &(*end)->next;
    *end = result;
}

// The result of one statement, and the end of its results.
static void server_answer(struct pg_conn *session, struct pg_result *result) {
    server_put(session, result);
    struct pg_result *end = server_result(PGRES_EMPTY_QUERY);
    end->is_end = 1;
    server_put(session, end);
}

void server_free(struct message *message) {
    for (int index = 0; index < message->count; index++) free(message->parameters[index].bytes);
    free(message);
}

static void notify(struct pg_conn *session) {
    char byte = 0;
    syscall(SYS_sendto, session->peer, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
    csim_descriptors_changed();
}

static void clear(struct pg_conn *session) {
    for (struct message *next, *message = session->queue; message; message = next) {
        next = message->next;
        server_free(message);
    }
    for (struct pg_result *next, *result = session->results; result; result = next) {
        next = result->next;
        PQclear(result);
    }
    session->queue = NULL;
    session->results = NULL;
    session->is_blocked = 0;
}

// Ends the server's side of a session.
void server_lose(struct pg_conn *session) {
    if (session->is_lost) return;
    end_transaction(session, "ROLLBACK");
    clear(session);
    session->is_lost = 1;
    snprintf(session->error, sizeof session->error, "server closed the connection unexpectedly");
    close(session->peer);
    csim_descriptors_changed();
}

static int64_t time_of(struct pg_conn *session) {
    if (session->is_lost) return NEVER;
    if (session->is_blocked) return writer ? session->patience_since + session->patience : csim_now();
    if (session->queue) return session->due;
    // As `idle_in_transaction_session_timeout` says.
    return session->is_in_transaction && !session->is_reading ? session->idle_since + 5000000000 : NEVER;
}

int64_t csim_next_service(void) {
    int64_t next = NEVER;
    for (int index = 0; index < session_limit; index++)
        if (server_sessions[index] && time_of(server_sessions[index]) < next) next = time_of(server_sessions[index]);
    return next;
}

int csim_ready_sessions(int *numbers) {
    int count = 0;
    for (int index = 0; index < session_limit; index++)
        if (server_sessions[index] && time_of(server_sessions[index]) <= csim_now()) numbers[count++] = index;
    return count;
}

// Performs the messages that a session has received, until one waits.
void csim_serve(int number) {
    struct pg_conn *session = server_sessions[number];
    if (!session->queue) return server_lose(session);
    int commits = 0;
    for (struct message *message = session->queue; message && message->call != call_sync; message = message->next)
        commits |= message->call == call_execute && message->statement->kind == kind_commit;
    uint64_t chance = (uint64_t)loss_permille * (commits ? 4 : 1);
    int is_lost = !session->is_blocked && csim_below(csim_database, 1000) < chance;
    if (is_lost && csim_below(csim_database, 2)) return server_lose(session);
    for (struct message *message; (message = session->queue);) {
        if (message->call == call_sync) {
            session->skips = 0;
            server_put(session, server_result(PGRES_PIPELINE_SYNC));
        } else if (session->skips) {
            server_answer(session, server_result(PGRES_PIPELINE_ABORTED));
        } else if (message->call == call_prepare) {
            server_answer(session, server_result(PGRES_COMMAND_OK));
        } else {
            struct pg_result *result = server_execute(session, message);
            if (!result) return;
            if (result->status == PGRES_FATAL_ERROR) {
                session->skips = 1;
                session->has_failed = session->is_in_transaction;
            }
            server_answer(session, result);
        }
        session->queue = message->next;
        server_free(message);
    }
    session->idle_since = csim_now();
    if (is_lost) server_lose(session);
    else notify(session);
}

// Ends all sessions, like a restart of the server; while it is away, no connection is accepted.
void csim_restart_server(int away) {
    is_away = away;
    for (int index = 0; index < session_limit; index++)
        if (server_sessions[index]) server_lose(server_sessions[index]);
}

void csim_reset_server(int machine) {
    for (int index = 0; index < session_limit; index++)
        if (server_sessions[index] && server_sessions[index]->machine == machine) PQfinish(server_sessions[index]);
}
