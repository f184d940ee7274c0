// A PostgreSQL server as the program sees it: the functions of libpq over one SQLite database, whose schema is that of
// the service. Statements come in the service's common dialect, and are translated back from PostgreSQL's.
//
// Simulated are sessions, pipelines and their errors, the transactions and the lock that nodes write in turns under,
// time limits, and lost connections: before a commit, or after it and before its response.
#include "internal.h"
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <sqlite3.h>
#include <sys/socket.h>

enum { session_limit = 128, parameter_limit = 64, column_limit = 96 };
enum { type_bytes = 17, type_integer = 20, type_text = 25, type_double = 701 };
enum { array_of_bytes = 1001, array_of_texts = 1009, array_of_integers = 1016, array_of_doubles = 1022 };

enum kind { kind_query, kind_begin, kind_begin_reading, kind_commit, kind_rollback, kind_lock, kind_setting, kind_sign, kind_numbers };

// A prepared statement.
struct statement {
    char name[24];
    enum kind kind;
    char *sql;                       // in SQLite's dialect
    int is_list, is_numbered;        // one execution for each element of the parameters
    int type_count;
    Oid types[parameter_limit];
    sqlite3_stmt *compiled;
    int has_shape;
    Oid shape[column_limit];         // the types of the columns, which the program reads once
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

static struct pg_conn *sessions[session_limit];
static struct pg_conn *writer;   // that holds the lock
static char place[512];
static int is_away, loss_permille;

void csim_set_losses(int permille) { loss_permille = permille; }

// MARK: Results

static struct pg_result *make_result(ExecStatusType status) {
    struct pg_result *result = calloc(1, sizeof *result);
    result->status = status;
    return result;
}

static struct pg_result *make_error(const char *state, const char *message) {
    struct pg_result *result = make_result(PGRES_FATAL_ERROR);
    snprintf(result->state, sizeof result->state, "%s", state);
    result->message = strdup(message);
    return result;
}

void PQclear(PGresult *result) {
    if (!result) return;
    for (int index = 0; index < result->rows * result->columns; index++) free(result->cells[index].bytes);
    for (int index = 0; index < result->columns; index++) free(result->names[index]);
    free(result->cells);
    free(result->names);
    free(result->message);
    free(result);
}

ExecStatusType PQresultStatus(const PGresult *result) { return result ? result->status : PGRES_FATAL_ERROR; }
int PQntuples(const PGresult *result) { return result->rows; }
int PQnfields(const PGresult *result) { return result->columns; }
char *PQfname(const PGresult *result, int column) { return result->names[column]; }
Oid PQftype(const PGresult *result, int column) { return result->types[column]; }
char *PQcmdTuples(PGresult *result) { return result->changes; }

static struct cell *cell_of(const PGresult *result, int row, int column) {
    return &result->cells[row * result->columns + column];
}

int PQgetisnull(const PGresult *result, int row, int column) { return cell_of(result, row, column)->bytes == NULL; }
int PQgetlength(const PGresult *result, int row, int column) { return cell_of(result, row, column)->length; }

char *PQgetvalue(const PGresult *result, int row, int column) {
    char *bytes = cell_of(result, row, column)->bytes;
    return bytes ? bytes : "";
}

char *PQresultErrorField(const PGresult *result, int field) {
    if (field == PG_DIAG_SQLSTATE) return result->state[0] ? (char *)result->state : NULL;
    return field == PG_DIAG_MESSAGE_PRIMARY ? result->message : NULL;
}

static void put_result(struct pg_conn *session, struct pg_result *result) {
    struct pg_result **end = &session->results;
    while (*end) end = &(*end)->next;
    *end = result;
}

// The result of one statement, and the end of its results.
static void answer(struct pg_conn *session, struct pg_result *result) {
    put_result(session, result);
    struct pg_result *end = make_result(PGRES_EMPTY_QUERY);
    end->is_end = 1;
    put_result(session, end);
}

// MARK: The dialect

static char *replaced(const char *text, const char *word, const char *other) {
    size_t length = strlen(word), extra = strlen(other), count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + length, word)) count++;
    char *result = malloc(strlen(text) + count * extra + 1), *to = result;
    for (const char *at; (at = strstr(text, word)); text = at + length)
        to += sprintf(to, "%.*s%s", (int)(at - text), text, other);
    strcpy(to, text);
    return result;
}

static void replace(char **text, const char *word, const char *other) {
    char *result = replaced(*text, word, other);
    free(*text);
    *text = result;
}

static int starts(const char *text, const char *word) { return strncmp(text, word, strlen(word)) == 0; }

// Turns a statement for lists of values into the one for each list, with parameters in the order of the arrays.
static void take_list(struct statement *statement) {
    char *lists = strstr(statement->sql, "unnest(");
    if (!lists) return;
    statement->is_list = 1;
    char *names = strstr(lists, "AS lists (");
    char *end = names ? strchr(names, ')') : NULL;
    if (!end) csim_fail("a statement for lists", statement->sql);
    char columns[2048];
    snprintf(columns, sizeof columns, "%.*s", (int)(end - names - 10), names + 10);
    char *text = NULL;
    char *lateral = strstr(end, "CROSS JOIN LATERAL (");
    if (lateral) {
        statement->is_numbered = 1;
        text = strdup(lateral + 20);
        char *last = strstr(text, ") AS answers");
        if (!last) csim_fail("a statement for lists", statement->sql);
        *last = 0;
    } else if (starts(statement->sql, "INSERT")) {
        char *values = strstr(statement->sql, ") SELECT ");
        if (!values || values > lists || asprintf(
                &text, "%.*s) VALUES (%.*s)%s", (int)(values - statement->sql), statement->sql,
                (int)(lists - 6 - (values + 9)), values + 9, end + 1) < 0)
            csim_fail("a statement for lists", statement->sql);
    } else {
        int is_update = starts(statement->sql, "UPDATE");
        if (asprintf(&text, "%.*s%s", (int)(lists - statement->sql - (is_update ? 6 : 7)), statement->sql, end + 1) < 0)
            csim_fail("asprintf", statement->sql);
    }
    free(statement->sql);
    statement->sql = text;
    // From the last name on, because c1 begins c10.
    char *listed[parameter_limit];
    int count = 0;
    for (char *rest, *name = strtok_r(columns, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest))
        if (strcmp(name, "list_number") != 0) listed[count++] = name;
    while (count-- > 0) {
        char before[32], after[16];
        snprintf(before, sizeof before, "lists.%s", listed[count]);
        snprintf(after, sizeof after, "?%d", count + 1);
        replace(&statement->sql, before, after);
    }
}

static enum kind kind_of(const char *sql) {
    if (starts(sql, "BEGIN ISOLATION LEVEL READ COMMITTED")) return kind_begin;
    if (starts(sql, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")) return kind_begin_reading;
    if (starts(sql, "COMMIT")) return kind_commit;
    if (starts(sql, "ROLLBACK")) return kind_rollback;
    if (starts(sql, "SELECT pg_advisory_xact_lock") || starts(sql, "LOCK TABLE")) return kind_lock;
    if (strstr(sql, "set_config(")) return kind_setting;
    if (starts(sql, "WITH signed AS")) return kind_sign;
    if (starts(sql, "SELECT nextval(")) return kind_numbers;
    return kind_query;
}

static void translate(struct statement *statement, const char *sql) {
    statement->kind = kind_of(sql);
    statement->sql = strdup(sql);
    if (statement->kind == kind_sign) {
        free(statement->sql);
        statement->sql = strdup("UPDATE node SET committed = ?3, lease_until = now() + ?4 WHERE id = ?1 AND epoch = ?2");
        statement->kind = kind_sign;
    }
    replace(&statement->sql, "$", "?");
    replace(&statement->sql, "make_interval(secs => ", "(");
    replace(&statement->sql, "extract(epoch FROM ", "(");
    if (csim_planted(csim_misreport_commit)) replace(&statement->sql, "RETURNING committed", "RETURNING committed - 1 AS committed");
    take_list(statement);
}

// MARK: Values

static uint64_t big_endian(const char *bytes, int count) {
    uint64_t number = 0;
    for (int index = 0; index < count; index++) number = number << 8 | (unsigned char)bytes[index];
    return number;
}

static void bind_value(sqlite3_stmt *compiled, int number, Oid type, const char *bytes, int length) {
    if (!bytes || type == 0) {
        sqlite3_bind_null(compiled, number);
    } else if (type == type_integer) {
        sqlite3_bind_int64(compiled, number, (sqlite3_int64)big_endian(bytes, 8));
    } else if (type == type_double) {
        uint64_t bits = big_endian(bytes, 8);
        double value;
        memcpy(&value, &bits, sizeof value);
        sqlite3_bind_double(compiled, number, value);
    } else if (type == type_text) {
        sqlite3_bind_text(compiled, number, bytes, length, SQLITE_TRANSIENT);
    } else {
        sqlite3_bind_blob(compiled, number, length ? bytes : "", length, SQLITE_TRANSIENT);
    }
}

static Oid element_of(Oid array) {
    switch (array) {
    case array_of_integers: return type_integer;
    case array_of_doubles: return type_double;
    case array_of_texts: return type_text;
    case array_of_bytes: return type_bytes;
    default: return 0;
    }
}

// The number of elements of an array in the binary format.
static int elements(const struct parameter *array) { return (int)big_endian(array->bytes + 12, 4); }

static void bind_element(sqlite3_stmt *compiled, int number, Oid type, const struct parameter *array, int index) {
    const char *at = array->bytes + 20;
    for (;; index--) {
        int length = (int)big_endian(at, 4);
        if (index == 0) return bind_value(compiled, number, type, length < 0 ? NULL : at + 4, length);
        at += 4 + (length < 0 ? 0 : length);
    }
}

static Oid type_of(sqlite3_stmt *compiled, int column) {
    switch (sqlite3_column_type(compiled, column)) {
    case SQLITE_INTEGER: return type_integer;
    case SQLITE_FLOAT: return type_double;
    case SQLITE_TEXT: return type_text;
    case SQLITE_BLOB: return type_bytes;
    default: break;
    }
    const char *declared = sqlite3_column_decltype(compiled, column);
    if (!declared) return type_integer;
    return strstr(declared, "TEXT") ? type_text : strstr(declared, "BLOB") ? type_bytes
        : strstr(declared, "REAL") ? type_double : type_integer;
}

static struct cell number_cell(uint64_t number) {
    struct cell cell = {malloc(8), 8};
    for (int index = 0; index < 8; index++) cell.bytes[index] = (char)(number >> (56 - 8 * index));
    return cell;
}

// The program reads the types of numbers alone.
static struct cell value_of(sqlite3_stmt *compiled, int column, Oid type) {
    int kind = sqlite3_column_type(compiled, column);
    if (kind == SQLITE_NULL) return (struct cell){NULL, 0};
    if (kind == SQLITE_INTEGER && type != type_double)
        return number_cell((uint64_t)sqlite3_column_int64(compiled, column));
    if (kind == SQLITE_INTEGER || kind == SQLITE_FLOAT) {
        if (type != type_double) csim_fail("a number of another type", sqlite3_column_name(compiled, column));
        double value = sqlite3_column_double(compiled, column);
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return number_cell(bits);
    }
    const void *bytes = sqlite3_column_blob(compiled, column);
    int length = sqlite3_column_bytes(compiled, column);
    struct cell cell = {malloc((size_t)length + 1), length};
    if (length) memcpy(cell.bytes, bytes, (size_t)length);
    cell.bytes[length] = 0;
    return cell;
}

static void name_columns(struct pg_result *result, struct statement *statement, int extra) {
    int own = sqlite3_column_count(statement->compiled);
    result->columns = own == 0 ? 0 : own + extra;
    if (result->columns > column_limit) csim_fail("too many columns", statement->sql);
    result->names = calloc((size_t)result->columns + 1, sizeof *result->names);
    for (int column = 0; column < own; column++)
        result->names[column] = strdup(sqlite3_column_name(statement->compiled, column));
    if (own && extra) result->names[own] = strdup("list_number");
}

static void add_row(struct pg_result *result, struct statement *statement, int list) {
    int own = sqlite3_column_count(statement->compiled);
    if (!statement->has_shape) {
        for (int column = 0; column < own; column++) statement->shape[column] = type_of(statement->compiled, column);
        statement->has_shape = 1;
    }
    size_t count = (size_t)(result->rows + 1) * (size_t)result->columns;
    result->cells = realloc(result->cells, count * sizeof *result->cells);
    struct cell *cells = &result->cells[result->rows++ * result->columns];
    for (int column = 0; column < own; column++)
        cells[column] = value_of(statement->compiled, column, statement->shape[column]);
    if (result->columns > own) cells[own] = number_cell((uint64_t)list + 1);
}

// MARK: Execution

static void now(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count, (void)values;
    sqlite3_result_double(context, (double)csim_now() / 1e9);
}

static sqlite3 *open_database(void) {
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
    struct pg_conn session = {.db = open_database()};
    run(&session, "CREATE TABLE node (id TEXT PRIMARY KEY, epoch INTEGER NOT NULL, committed INTEGER NOT NULL DEFAULT 0, "
        "lease_until REAL NOT NULL, contents TEXT, document BLOB, draining INTEGER NOT NULL DEFAULT FALSE);"
        "CREATE TABLE schema_version AS SELECT user_version AS version FROM pragma_user_version");
    sqlite3_close(session.db);
}

static void end_transaction(struct pg_conn *session, const char *sql) {
    for (struct statement *statement = session->statements; statement; statement = statement->next)
        if (statement->compiled) sqlite3_reset(statement->compiled);
    if (session->has_begun) run(session, sql);
    if (writer == session) writer = NULL;
    session->is_in_transaction = session->is_reading = session->has_begun = session->has_failed = 0;
}

static struct pg_result *fault_of(struct pg_conn *session) {
    int code = sqlite3_extended_errcode(session->db);
    const char *state = code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY
            || code == SQLITE_CONSTRAINT_ROWID ? "23505" : (code & 0xFF) == SQLITE_CONSTRAINT ? "23514" : "XX000";
    if (strcmp(state, "XX000") == 0) csim_fail("the server's database", sqlite3_errmsg(session->db));
    return make_error(state, sqlite3_errmsg(session->db));
}

// Runs a statement once for each list of its values.
static struct pg_result *query(struct pg_conn *session, struct message *message) {
    struct statement *statement = message->statement;
    if (!statement->compiled
        && sqlite3_prepare_v3(session->db, statement->sql, -1, 0, &statement->compiled, NULL) != SQLITE_OK)
        csim_fail(statement->sql, sqlite3_errmsg(session->db));
    struct pg_result *result = make_result(PGRES_COMMAND_OK);
    name_columns(result, statement, statement->is_numbered);
    if (result->columns) result->status = PGRES_TUPLES_OK;
    int lists = statement->is_list && message->count ? elements(&message->parameters[0]) : 1;
    int64_t changes = 0;
    for (int list = 0; list < lists; list++) {
        for (int index = 0; index < message->count; index++) {
            Oid type = statement->types[index];
            struct parameter *parameter = &message->parameters[index];
            if (statement->is_list) bind_element(statement->compiled, index + 1, element_of(type), parameter, list);
            else bind_value(statement->compiled, index + 1, type, parameter->bytes, parameter->length);
        }
        int before = sqlite3_total_changes(session->db), code;
        while ((code = sqlite3_step(statement->compiled)) == SQLITE_ROW) add_row(result, statement, list);
        if (code != SQLITE_DONE) {
            PQclear(result);
            result = fault_of(session);
            sqlite3_reset(statement->compiled);
            return result;
        }
        if (!sqlite3_stmt_readonly(statement->compiled) && sqlite3_total_changes(session->db) > before)
            changes += sqlite3_changes(session->db);
        sqlite3_reset(statement->compiled);
    }
    for (int column = 0; column < result->columns; column++)
        result->types[column] = column < sqlite3_column_count(statement->compiled) && statement->has_shape
            ? statement->shape[column] : type_integer;
    if (!statement->has_shape)
        for (int column = 0; column < sqlite3_column_count(statement->compiled); column++)
            result->types[column] = statement->shape[column] = type_of(statement->compiled, column);
    statement->has_shape = 1;
    snprintf(result->changes, sizeof result->changes, "%lld", (long long)(result->rows ? result->rows : changes));
    return result;
}

// Numbers of a sequence are never drawn twice, not even after a transaction is undone.
static struct pg_result *draw_numbers(struct pg_conn *session, struct message *message) {
    static struct { char table[32]; sqlite3_int64 last; } sequences[32];
    int index = 0;
    while (sequences[index].table[0] && strcmp(sequences[index].table, message->parameters[0].bytes) != 0) index++;
    snprintf(sequences[index].table, sizeof sequences[index].table, "%s", message->parameters[0].bytes);
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT max(coalesce((SELECT max(id) FROM %s), 0), coalesce((SELECT seq FROM "
        "sqlite_sequence WHERE name = '%s'), 0))", sequences[index].table, sequences[index].table);
    sqlite3_stmt *compiled = NULL;
    if (sqlite3_prepare_v2(session->db, sql, -1, &compiled, NULL) != SQLITE_OK || sqlite3_step(compiled) != SQLITE_ROW)
        csim_fail(sql, sqlite3_errmsg(session->db));
    sqlite3_int64 stored = sqlite3_column_int64(compiled, 0);
    sqlite3_finalize(compiled);
    if (stored > sequences[index].last) sequences[index].last = stored;
    struct pg_result *result = make_result(PGRES_TUPLES_OK);
    result->columns = 1;
    result->names = calloc(1, sizeof *result->names);
    result->names[0] = strdup("nextval");
    result->types[0] = type_integer;
    result->rows = (int)big_endian(message->parameters[1].bytes, 8);
    result->cells = calloc((size_t)result->rows + 1, sizeof *result->cells);
    for (int row = 0; row < result->rows; row++) result->cells[row] = number_cell((uint64_t)++sequences[index].last);
    return result;
}

static void set_patience(struct pg_conn *session, struct message *message) {
    struct parameter *given = &message->parameters[0];
    int64_t limit = message->statement->types[0] == type_integer
        ? (int64_t)big_endian(given->bytes, 8) - (csim_now() - session->began) / 1000000 : atoll(given->bytes);
    session->patience = (limit > 1 ? limit : 1) * 1000000;
}

// Executes one message; NULL if it waits for the lock.
static struct pg_result *execute(struct pg_conn *session, struct message *message) {
    struct statement *statement = message->statement;
    if (statement->kind == kind_rollback) {
        end_transaction(session, "ROLLBACK");
        return make_result(PGRES_COMMAND_OK);
    }
    if (session->has_failed) return make_error("25P02", "current transaction is aborted");
    int waits = statement->kind == kind_lock && !csim_planted(csim_skip_turn);
    int writes = waits || statement->kind == kind_sign
        || (statement->kind == kind_query && session->is_in_transaction && !session->is_reading
            && !starts(statement->sql, "SELECT") && !starts(statement->sql, "WITH RECURSIVE"));
    if (writes && !session->is_reading) {
        if (writer && writer != session) {
            if (!session->is_blocked) session->patience_since = csim_now();
            session->is_blocked = 1;
            if (csim_now() - session->patience_since < session->patience) return NULL;
            session->is_blocked = 0;
            return make_error("55P03", "canceling statement due to lock timeout");
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
        return make_result(PGRES_COMMAND_OK);
    case kind_commit:
        end_transaction(session, csim_planted(csim_undo_commit) && csim_below(csim_database, 60) == 0 ? "ROLLBACK" : "COMMIT");
        return make_result(PGRES_COMMAND_OK);
    case kind_lock: return make_result(PGRES_COMMAND_OK);
    case kind_setting:
        set_patience(session, message);
        return make_result(PGRES_COMMAND_OK);
    case kind_numbers: return draw_numbers(session, message);
    case kind_sign: {
        struct pg_result *result = query(session, message);
        if (result->status != PGRES_COMMAND_OK || strcmp(result->changes, "0") != 0 || csim_planted(csim_skip_fence))
            return result;
        PQclear(result);
        return make_error("22012", "division by zero");
    }
    default: return query(session, message);
    }
}

// MARK: Sessions

static void free_message(struct message *message) {
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
        free_message(message);
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
static void lose(struct pg_conn *session) {
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
        if (sessions[index] && time_of(sessions[index]) < next) next = time_of(sessions[index]);
    return next;
}

int csim_ready_sessions(int *numbers) {
    int count = 0;
    for (int index = 0; index < session_limit; index++)
        if (sessions[index] && time_of(sessions[index]) <= csim_now()) numbers[count++] = index;
    return count;
}

// Performs the messages that a session has received, until one waits.
void csim_serve(int number) {
    struct pg_conn *session = sessions[number];
    if (!session->queue) return lose(session);
    int commits = 0;
    for (struct message *message = session->queue; message && message->call != call_sync; message = message->next)
        commits |= message->call == call_execute && message->statement->kind == kind_commit;
    int is_lost = !session->is_blocked && csim_below(csim_database, 1000) < (uint64_t)(commits ? 4 : 1) * (uint64_t)loss_permille;
    if (is_lost && csim_below(csim_database, 2)) return lose(session);
    for (struct message *message; (message = session->queue);) {
        if (message->call == call_sync) {
            session->skips = 0;
            put_result(session, make_result(PGRES_PIPELINE_SYNC));
        } else if (session->skips) {
            answer(session, make_result(PGRES_PIPELINE_ABORTED));
        } else if (message->call == call_prepare) {
            answer(session, make_result(PGRES_COMMAND_OK));
        } else {
            struct pg_result *result = execute(session, message);
            if (!result) return;
            if (result->status == PGRES_FATAL_ERROR) session->skips = 1, session->has_failed = session->is_in_transaction;
            answer(session, result);
        }
        session->queue = message->next;
        free_message(message);
    }
    session->idle_since = csim_now();
    if (is_lost) lose(session);
    else notify(session);
}

// Ends all sessions, like a restart of the server; while it is away, no connection is accepted.
void csim_restart_server(int away) {
    is_away = away;
    for (int index = 0; index < session_limit; index++)
        if (sessions[index]) lose(sessions[index]);
}

void csim_reset_server(int machine) {
    for (int index = 0; index < session_limit; index++)
        if (sessions[index] && sessions[index]->machine == machine) PQfinish(sessions[index]);
}

// MARK: Connections

PGconn *PQconnectdbParams(const char *const *names, const char *const *values, int expands) {
    (void)names, (void)values, (void)expands;
    struct pg_conn *session = calloc(1, sizeof *session);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) csim_fail("socketpair", "");
    session->socket = pair[0];
    session->peer = pair[1];
    session->machine = csim_machine();
    csim_disown(pair[0]);
    csim_disown(pair[1]);
    if (csim_is_on_thread()) csim_pause_until(csim_now() + (int64_t)csim_below(csim_database, 20000000));
    int index = 0;
    while (index < session_limit && sessions[index]) index++;
    if (index == session_limit) csim_fail("PQconnectdbParams", "too many sessions");
    sessions[index] = session;
    // Its descriptors are those of another machine.
    int machine = csim_enter(0);
    session->db = open_database();
    csim_enter(machine);
    if (is_away) lose(session);
    return session;
}

void PQfinish(PGconn *session) {
    if (!session) return;
    lose(session);
    for (struct statement *next, *statement = session->statements; statement; statement = next) {
        next = statement->next;
        sqlite3_finalize(statement->compiled);
        free(statement->sql);
        free(statement);
    }
    for (struct message *next, *message = session->unsent; message; message = next) {
        next = message->next;
        free_message(message);
    }
    sqlite3_close(session->db);
    for (int index = 0; index < session_limit; index++)
        if (sessions[index] == session) sessions[index] = NULL;
    close(session->socket);
    free(session);
}

ConnStatusType PQstatus(const PGconn *session) { return session->is_lost ? CONNECTION_BAD : CONNECTION_OK; }
char *PQerrorMessage(const PGconn *session) { return (char *)session->error; }
int PQsocket(const PGconn *session) { return session->socket; }
int PQserverVersion(const PGconn *session) { return (void)session, 150000; }
int PQsetnonblocking(PGconn *session, int value) { return (void)session, (void)value, 0; }
int PQenterPipelineMode(PGconn *session) { return !session->is_lost; }

PQnoticeProcessor PQsetNoticeProcessor(PGconn *session, PQnoticeProcessor processor, void *argument) {
    return (void)session, (void)processor, (void)argument, NULL;
}

static struct message *put_message(struct pg_conn *session, enum call call, struct statement *statement) {
    struct message *message = calloc(1, sizeof *message), **end = &session->unsent;
    message->call = call;
    message->statement = statement;
    while (*end) end = &(*end)->next;
    return *end = message;
}

int PQsendPrepare(PGconn *session, const char *name, const char *sql, int count, const Oid *types) {
    if (session->is_lost) return 0;
    if (count > parameter_limit) csim_fail("too many parameters", sql);
    struct statement *statement = calloc(1, sizeof *statement);
    snprintf(statement->name, sizeof statement->name, "%s", name);
    statement->type_count = count;
    for (int index = 0; index < count; index++) statement->types[index] = types[index];
    translate(statement, sql);
    statement->next = session->statements;
    session->statements = statement;
    put_message(session, call_prepare, statement);
    return 1;
}

int PQsendQueryPrepared(
    PGconn *session, const char *name, int count, const char *const *values, const int *lengths, const int *formats,
    int format
) {
    (void)formats, (void)format;
    if (session->is_lost) return 0;
    struct statement *statement = session->statements;
    while (statement && strcmp(statement->name, name) != 0) statement = statement->next;
    if (!statement) csim_fail("PQsendQueryPrepared", name);
    struct message *message = put_message(session, call_execute, statement);
    message->count = count;
    for (int index = 0; index < count; index++) {
        if (!values[index]) continue;
        message->parameters[index].length = lengths[index];
        message->parameters[index].bytes = calloc(1, (size_t)lengths[index] + 1);
        memcpy(message->parameters[index].bytes, values[index], (size_t)lengths[index]);
    }
    return 1;
}

int PQsendQueryParams(
    PGconn *session, const char *sql, int count, const Oid *types, const char *const *values, const int *lengths,
    const int *formats, int format
) {
    (void)session, (void)count, (void)types, (void)values, (void)lengths, (void)formats, (void)format;
    csim_fail("PQsendQueryParams", sql);
}

// The server receives the messages up to here together, after a while.
int PQpipelineSync(PGconn *session) {
    if (session->is_lost) return 0;
    put_message(session, call_sync, NULL);
    struct message **end = &session->queue;
    if (!session->queue) session->due = csim_now() + 20000 + (int64_t)csim_below(csim_database, 1000000);
    while (*end) end = &(*end)->next;
    *end = session->unsent;
    session->unsent = NULL;
    return 1;
}

int PQflush(PGconn *session) { return session->is_lost ? -1 : 0; }
int PQisBusy(PGconn *session) { return session->results == NULL; }

int PQconsumeInput(PGconn *session) {
    char bytes[64];
    while (syscall(SYS_recvfrom, session->socket, bytes, sizeof bytes, MSG_DONTWAIT, NULL, NULL) > 0) {}
    return !session->is_lost;
}

PGresult *PQgetResult(PGconn *session) {
    struct pg_result *result = session->results;
    if (!result) return NULL;
    session->results = result->next;
    result->next = NULL;
    if (!result->is_end) return result;
    PQclear(result);
    return NULL;
}

// Runs one statement at once, as scripts do: the migrations, which find a schema of this version.
PGresult *PQexec(PGconn *session, const char *sql) {
    if (session->is_lost) return make_error("08006", session->error);
    struct statement statement = {.name = "script"};
    struct message message = {.call = call_execute, .statement = &statement};
    if (starts(sql, "SELECT to_regclass")) sql = "SELECT 'schema_version'";
    translate(&statement, sql);
    struct pg_result *result;
    while (!(result = execute(session, &message))) csim_run_others(csim_now() + 10000000);
    sqlite3_finalize(statement.compiled);
    free(statement.sql);
    // Scripts read texts.
    for (int row = 0; row < result->rows; row++)
        for (int column = 0; column < result->columns; column++) {
            struct cell *cell = cell_of(result, row, column);
            if (!cell->bytes || result->types[column] != type_integer) continue;
            char text[24];
            cell->length = snprintf(text, sizeof text, "%lld", (long long)big_endian(cell->bytes, 8));
            free(cell->bytes);
            cell->bytes = strdup(text);
        }
    return result;
}

PQconninfoOption *PQconninfoParse(const char *text, char **error) { return (void)text, (void)error, calloc(1, sizeof(PQconninfoOption)); }
void PQconninfoFree(PQconninfoOption *options) { free(options); }
void PQfreemem(void *memory) { free(memory); }
PGcancel *PQgetCancel(PGconn *session) { return (void)session, NULL; }
void PQfreeCancel(PGcancel *cancel) { (void)cancel; }
int PQcancel(PGcancel *cancel, char *error, int count) { return (void)cancel, (void)error, (void)count, 0; }
int PQputCopyData(PGconn *session, const char *bytes, int count) { return (void)session, (void)bytes, (void)count, -1; }
int PQputCopyEnd(PGconn *session, const char *error) { return (void)session, (void)error, -1; }
int PQgetCopyData(PGconn *session, char **bytes, int asynchronous) { return (void)session, (void)bytes, (void)asynchronous, -2; }

// MARK: The library

#include <dlfcn.h>

#define REAL(name, version) ({ \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlvsym(RTLD_NEXT, #name, version); \
    real; })

#define FUNCTIONS(X) \
    X(PQconnectdbParams) X(PQfinish) X(PQstatus) X(PQerrorMessage) X(PQsocket) X(PQserverVersion) X(PQsetnonblocking) \
    X(PQenterPipelineMode) X(PQpipelineSync) X(PQflush) X(PQconsumeInput) X(PQisBusy) X(PQexec) X(PQsendPrepare) \
    X(PQsendQueryPrepared) X(PQsendQueryParams) X(PQgetResult) X(PQresultStatus) X(PQresultErrorField) X(PQclear) \
    X(PQntuples) X(PQnfields) X(PQfname) X(PQftype) X(PQgetisnull) X(PQgetvalue) X(PQgetlength) X(PQcmdTuples) \
    X(PQgetCancel) X(PQcancel) X(PQfreeCancel) X(PQconninfoParse) X(PQconninfoFree) X(PQfreemem) \
    X(PQsetNoticeProcessor) X(PQputCopyData) X(PQputCopyEnd) X(PQgetCopyData)

static const struct { const char *name; void *function; } functions[] = {
#define ENTRY(name) {#name, (void *)name},
    FUNCTIONS(ENTRY)
};
static char library;

// The program opens libpq when it is asked for a server, and looks its functions up by name.
EXPORT void *dlopen(const char *name, int mode) {
    if (csim_is_on() && name && strcmp(name, "libpq.so.5") == 0) return &library;
    return REAL(dlopen, "GLIBC_2.34")(name, mode);
}

EXPORT void *dlsym(void *restrict handle, const char *restrict name) {
    if (handle != &library) return REAL(dlsym, "GLIBC_2.34")(handle, name);
    for (size_t index = 0; index < sizeof functions / sizeof *functions; index++)
        if (strcmp(functions[index].name, name) == 0) return functions[index].function;
    return NULL;
}
