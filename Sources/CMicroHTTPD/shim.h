// libmicrohttpd's variadic functions, which Swift cannot call, one form for each use.
#include <microhttpd.h>

static inline struct MHD_Daemon *mhd_start_daemon(unsigned int flags, MHD_AccessHandlerCallback handler,
                                                  void *context, const struct MHD_OptionItem *options) {
    return MHD_start_daemon(flags, 0, NULL, NULL, handler, context, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

// libmicrohttpd starts only with a certificate or with a function that finds one. Sessions are given theirs when they
// begin, before this would be asked; it has none.
static inline int mhd_no_certificate(void) { return -1; }

static inline struct MHD_OptionItem mhd_sessions_bring_certificates(void) {
    struct MHD_OptionItem item = {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)mhd_no_certificate};
    return item;
}

static inline int mhd_connection_descriptor(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static inline void *mhd_connection_tls(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info ? info->tls_session : NULL;
}

static inline void *mhd_connection_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static inline size_t mhd_request_header_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

// Ends the body with the connection instead of with a last chunk.
static inline enum MHD_Result mhd_end_with_connection(struct MHD_Response *response) {
    return MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
}

static const ssize_t mhd_end_of_stream = MHD_CONTENT_READER_END_OF_STREAM;
static const ssize_t mhd_end_with_error = MHD_CONTENT_READER_END_WITH_ERROR;
