// libpq as the program finds it: results, connections and pipelines with the simulated server.
#include "server.h"
#include <dlfcn.h>
#include <sys/socket.h>

// MARK: Results

struct pg_result *server_result(ExecStatusType status) {
    struct pg_result *result = calloc(1, sizeof *result);
    result->status = status;
    return result;
}

struct pg_result *server_error(const char *state, const char *message) {
    struct pg_result *result = server_result(PGRES_FATAL_ERROR);
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

// MARK: Connections

PGconn *PQconnectdbParams(const char *const *names, const char *const *values, int expands) {
    (void)names, (void)values, (void)expands;
    if (csim_is_on_thread()) csim_pause_until(csim_now() + (int64_t)csim_below(csim_database, 20000000));
    struct pg_conn *session = calloc(1, sizeof *session);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) csim_fail("socketpair", "");
    session->socket = pair[0];
    session->peer = pair[1];
    session->machine = csim_machine();
    csim_disown(pair[0]);
    csim_disown(pair[1]);
    int index = 0;
    while (index < session_limit && server_sessions[index]) index++;
    if (index == session_limit) csim_fail("PQconnectdbParams", "too many sessions");
    server_sessions[index] = session;
    // Its descriptors are those of another machine.
    int machine = csim_enter(0);
    session->db = server_open();
    csim_enter(machine);
    if (server_is_away()) server_lose(session);
    return session;
}

void PQfinish(PGconn *session) {
    if (!session) return;
    server_lose(session);
    for (struct statement *next, *statement = session->statements; statement; statement = next) {
        next = statement->next;
        sqlite3_finalize(statement->compiled);
        free(statement->sql);
        free(statement);
    }
    for (struct message *next, *message = session->unsent; message; message = next) {
        next = message->next;
        server_free(message);
    }
    sqlite3_close(session->db);
    for (int index = 0; index < session_limit; index++)
        if (server_sessions[index] == session) server_sessions[index] = NULL;
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
    for (int index = 0; index < count; index++) statement->types[index] = types[index];
    server_translate(statement, sql);
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
    if (session->is_lost) return server_error("08006", session->error);
    struct statement statement = {.name = "script"};
    struct message message = {.call = call_execute, .statement = &statement};
    if (server_starts(sql, "SELECT to_regclass")) sql = "SELECT 'schema_version'";
    server_translate(&statement, sql);
    struct pg_result *result;
    while (!(result = server_execute(session, &message))) csim_run_others(csim_now() + 10000000);
    sqlite3_finalize(statement.compiled);
    free(statement.sql);
    // Scripts read texts.
    for (int row = 0; row < result->rows; row++)
        for (int column = 0; column < result->columns; column++) {
            struct cell *cell = cell_of(result, row, column);
            if (!cell->bytes || result->types[column] != type_integer) continue;
            char text[24];
            cell->length = snprintf(text, sizeof text, "%lld", (long long)server_number(cell->bytes, 8));
            free(cell->bytes);
            cell->bytes = strdup(text);
        }
    return result;
}

PQconninfoOption *PQconninfoParse(const char *text, char **error) {
    return (void)text, (void)error, calloc(1, sizeof(PQconninfoOption));
}

void PQconninfoFree(PQconninfoOption *options) { free(options); }
void PQfreemem(void *memory) { free(memory); }

// Never called in a simulated run.
PGcancel *PQgetCancel(PGconn *session) { return (void)session, NULL; }
void PQfreeCancel(PGcancel *cancel) { (void)cancel; }
int PQcancel(PGcancel *cancel, char *error, int count) { return (void)cancel, (void)error, (void)count, 0; }
int PQputCopyData(PGconn *session, const char *bytes, int count) { return (void)session, (void)bytes, (void)count, -1; }
int PQputCopyEnd(PGconn *session, const char *error) { return (void)session, (void)error, -1; }
int PQgetCopyData(PGconn *session, char **bytes, int asynchronous) {
    return (void)session, (void)bytes, (void)asynchronous, -2;
}

// MARK: The library

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
    // REAL may call this function.
    static __typeof__(&dlsym) real;
    if (!real) real = (__typeof__(&dlsym))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real) csim_fail("dlvsym", "no dlsym");
    if (handle != &library) return real(handle, name);
    for (size_t index = 0; index < sizeof functions / sizeof *functions; index++)
        if (strcmp(functions[index].name, name) == 0) return functions[index].function;
    return NULL;
}
