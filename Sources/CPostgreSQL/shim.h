// libpq, which is looked for when a PostgreSQL server is asked for: without one the library need not be there.
#include <dlfcn.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <stdlib.h>

#define LIBPQ_FUNCTIONS(X)                                                                                             \
    X(PQconnectdbParams) X(PQfinish) X(PQstatus) X(PQerrorMessage) X(PQsocket) X(PQserverVersion)                      \
    X(PQsetnonblocking) X(PQenterPipelineMode) X(PQpipelineSync) X(PQflush) X(PQconsumeInput) X(PQisBusy)              \
    X(PQexec) X(PQsendPrepare) X(PQsendQueryPrepared) X(PQsendQueryParams) X(PQgetResult)                              \
    X(PQresultStatus) X(PQresultErrorField) X(PQclear) X(PQntuples) X(PQnfields) X(PQfname) X(PQftype)                 \
    X(PQgetisnull) X(PQgetvalue) X(PQgetlength) X(PQcmdTuples) X(PQgetCancel) X(PQcancel) X(PQfreeCancel)              \
    X(PQconninfoParse) X(PQconninfoFree) X(PQfreemem) X(PQsetNoticeProcessor)                                          \
    X(PQputCopyData) X(PQputCopyEnd) X(PQgetCopyData)

/// The functions of libpq that are used.
struct libpq {
#define LIBPQ_MEMBER(name) __typeof__(name) *_Nonnull name;
    LIBPQ_FUNCTIONS(LIBPQ_MEMBER)
#undef LIBPQ_MEMBER
};

/// Loads the library for the rest of the process. Null, and why, where it cannot be had.
static inline const struct libpq *_Nullable libpq_load(const char *_Nullable *_Nonnull reason) {
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    struct libpq *functions = library ? (struct libpq *)malloc(sizeof *functions) : NULL;
    *reason = library ? "no memory" : dlerror();
    if (!functions) return NULL;
#define LIBPQ_LOAD(name)                                                                                               \
    {                                                                                                                  \
        void *symbol = dlsym(library, #name);                                                                          \
        if (!symbol) {                                                                                                 \
            *reason = "libpq.so.5 has no " #name ": version 14 or later is needed";                                    \
            free(functions);                                                                                           \
            return NULL;                                                                                               \
        }                                                                                                              \
        functions->name = (__typeof__(name) *)symbol;                                                                  \
    }
    LIBPQ_FUNCTIONS(LIBPQ_LOAD)
#undef LIBPQ_LOAD
    return functions;
}

/// PG_DIAG_SQLSTATE and PG_DIAG_MESSAGE_PRIMARY, which are characters.
static const int libpq_sqlstate = PG_DIAG_SQLSTATE;
static const int libpq_message = PG_DIAG_MESSAGE_PRIMARY;
