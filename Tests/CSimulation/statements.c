// Statements of the simulated server: from PostgreSQL's dialect back to SQLite's, and their values and results.
#include "server.h"

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

int server_starts(const char *text, const char *word) { return strncmp(text, word, strlen(word)) == 0; }

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
    } else if (server_starts(statement->sql, "INSERT")) {
        char *values = strstr(statement->sql, ") SELECT ");
        if (!values || values > lists || asprintf(
                &text, "%.*s) VALUES (%.*s)%s", (int)(values - statement->sql), statement->sql,
                (int)(lists - 6 - (values + 9)), values + 9, end + 1) < 0)
            csim_fail("a statement for lists", statement->sql);
    } else {
        int is_update = server_starts(statement->sql, "UPDATE");
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
    if (server_starts(sql, "BEGIN ISOLATION LEVEL READ COMMITTED")) return kind_begin;
    if (server_starts(sql, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")) return kind_begin_reading;
    if (server_starts(sql, "COMMIT")) return kind_commit;
    if (server_starts(sql, "ROLLBACK")) return kind_rollback;
    if (server_starts(sql, "SELECT pg_advisory_xact_lock") || server_starts(sql, "LOCK TABLE")) return kind_lock;
    if (strstr(sql, "set_config(")) return kind_setting;
    if (server_starts(sql, "WITH signed AS")) return kind_sign;
    if (server_starts(sql, "SELECT nextval(")) return kind_numbers;
    return kind_query;
}

void server_translate(struct statement *statement, const char *sql) {
    statement->kind = kind_of(sql);
    // SQLite has no changes in a WITH, and divides by zero without an error.
    statement->sql = strdup(
        statement->kind == kind_sign
            ? "UPDATE node SET committed = ?3, lease_until = now() + ?4 WHERE id = ?1 AND epoch = ?2" : sql);
    replace(&statement->sql, "$", "?");
    replace(&statement->sql, "make_interval(secs => ", "(");
    replace(&statement->sql, "extract(epoch FROM ", "(");
    if (csim_planted(csim_misreport_commit))
        replace(&statement->sql, "RETURNING committed", "RETURNING committed - 1 AS committed");
    take_list(statement);
}

// MARK: Values

uint64_t server_number(const char *bytes, int count) {
    uint64_t number = 0;
    for (int index = 0; index < count; index++) number = number << 8 | (unsigned char)bytes[index];
    return number;
}

static void bind_value(sqlite3_stmt *compiled, int number, Oid type, const char *bytes, int length) {
    if (!bytes || type == 0) {
        sqlite3_bind_null(compiled, number);
    } else if (type == type_integer) {
        sqlite3_bind_int64(compiled, number, (sqlite3_int64)server_number(bytes, 8));
    } else if (type == type_double) {
        uint64_t bits = server_number(bytes, 8);
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
static int elements(const struct parameter *array) { return (int)server_number(array->bytes + 12, 4); }

static void bind_element(sqlite3_stmt *compiled, int number, Oid type, const struct parameter *array, int index) {
    const char *at = array->bytes + 20;
    for (;; index--) {
        int length = (int)server_number(at, 4);
        if (index == 0) return bind_value(compiled, number, type, length < 0 ? NULL : at + 4, length);
        at += 4 + (length < 0 ? 0 : length);
    }
}

static Oid type_of(sqlite3_stmt *compiled, int column) {
    const char *declared = sqlite3_column_decltype(compiled, column);
    int is_double = sqlite3_column_type(compiled, column) == SQLITE_FLOAT || (declared && strstr(declared, "REAL"));
    return is_double ? type_double : type_integer;
}

static void learn_shape(struct statement *statement) {
    for (int column = 0; column < sqlite3_column_count(statement->compiled) && !statement->has_shape; column++)
        statement->shape[column] = type_of(statement->compiled, column);
    statement->has_shape = 1;
}

static struct cell number_cell(uint64_t number) {
    struct cell cell = {malloc(8), 8};
    for (int index = 0; index < 8; index++) cell.bytes[index] = (char)(number >> (56 - 8 * index));
    return cell;
}

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
    learn_shape(statement);
    size_t count = (size_t)(result->rows + 1) * (size_t)result->columns;
    result->cells = realloc(result->cells, count * sizeof *result->cells);
    struct cell *cells = &result->cells[result->rows++ * result->columns];
    for (int column = 0; column < own; column++)
        cells[column] = value_of(statement->compiled, column, statement->shape[column]);
    if (result->columns > own) cells[own] = number_cell((uint64_t)list + 1);
}

// MARK: Queries

static struct pg_result *fault_of(struct pg_conn *session) {
    int code = sqlite3_extended_errcode(session->db);
    const char *state = code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY
            || code == SQLITE_CONSTRAINT_ROWID ? "23505" : (code & 0xFF) == SQLITE_CONSTRAINT ? "23514" : "XX000";
    if (strcmp(state, "XX000") == 0) csim_fail("the server's database", sqlite3_errmsg(session->db));
    return server_error(state, sqlite3_errmsg(session->db));
}

// Runs a statement once for each list of its values.
struct pg_result *server_query(struct pg_conn *session, struct message *message) {
    struct statement *statement = message->statement;
    if (!statement->compiled
        && sqlite3_prepare_v3(session->db, statement->sql, -1, 0, &statement->compiled, NULL) != SQLITE_OK)
        csim_fail(statement->sql, sqlite3_errmsg(session->db));
    struct pg_result *result = server_result(PGRES_COMMAND_OK);
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
    learn_shape(statement);
    for (int column = 0; column < result->columns; column++)
        result->types[column] = column < sqlite3_column_count(statement->compiled)
            ? statement->shape[column] : type_integer;
    snprintf(result->changes, sizeof result->changes, "%lld", (long long)(result->rows ? result->rows : changes));
    return result;
}

// Numbers of a sequence are never drawn twice, not even after a transaction is undone.
struct pg_result *server_draw_numbers(struct pg_conn *session, struct message *message) {
    static struct { char table[32]; sqlite3_int64 last; } sequences[32];
    int index = 0;
    while (sequences[index].table[0] && strcmp(sequences[index].table, message->parameters[0].bytes) != 0)
        if (++index == 32) csim_fail("too many sequences", message->parameters[0].bytes);
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
    struct pg_result *result = server_result(PGRES_TUPLES_OK);
    result->columns = 1;
    result->names = calloc(1, sizeof *result->names);
    result->names[0] = strdup("nextval");
    result->types[0] = type_integer;
    result->rows = (int)server_number(message->parameters[1].bytes, 8);
    result->cells = calloc((size_t)result->rows + 1, sizeof *result->cells);
    for (int row = 0; row < result->rows; row++) result->cells[row] = number_cell((uint64_t)++sequences[index].last);
    return result;
}
