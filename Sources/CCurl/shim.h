#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// curl_easy_setopt and its sisters are variadic, which Swift cannot import.
// One function per argument *type*; nothing else lives here.

typedef size_t (*ccurl_data_function)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_seek_function)(void *context, curl_off_t offset, int origin);
typedef curl_socket_t (*ccurl_open_socket_function)(void *context, curlsocktype purpose, struct curl_sockaddr *address);
typedef int (*ccurl_before_request_function)(void *context, char *remote, char *local, int remote_port, int local_port);
typedef CURLcode (*ccurl_handshake_function)(CURL *easy, void *tls_context, void *context);
typedef int (*ccurl_socket_function)(CURL *easy, curl_socket_t socket, int what, void *context, void *socket_context);
typedef int (*ccurl_timer_function)(CURLM *multi, long milliseconds, void *context);

static inline CURLcode ccurl_easy_set_long(CURL *h, CURLoption o, long v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_easy_set_offset(CURL *h, CURLoption o, curl_off_t v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_easy_set_string(CURL *h, CURLoption o, const char *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_easy_set_pointer(CURL *h, CURLoption o, void *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_easy_set_list(CURL *h, CURLoption o, struct curl_slist *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_easy_set_blob(CURL *h, CURLoption o, struct curl_blob *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_easy_set_data_function(CURL *h, CURLoption o, ccurl_data_function v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_easy_set_seek_function(CURL *h, ccurl_seek_function v) { return curl_easy_setopt(h, CURLOPT_SEEKFUNCTION, v); }
static inline CURLcode ccurl_easy_set_open_socket_function(CURL *h, ccurl_open_socket_function v) { return curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, v); }
static inline CURLcode ccurl_easy_set_before_request_function(CURL *h, ccurl_before_request_function v) { return curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, v); }
static inline CURLcode ccurl_easy_set_handshake_function(CURL *h, ccurl_handshake_function v) { return curl_easy_setopt(h, CURLOPT_SSL_CTX_FUNCTION, v); }

static inline CURLcode ccurl_easy_get_long(CURL *h, CURLINFO i, long *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode ccurl_easy_get_offset(CURL *h, CURLINFO i, curl_off_t *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode ccurl_easy_get_string(CURL *h, CURLINFO i, char **v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode ccurl_easy_get_list(CURL *h, CURLINFO i, struct curl_slist **v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode ccurl_easy_get_tls(CURL *h, struct curl_tlssessioninfo **v) { return curl_easy_getinfo(h, CURLINFO_TLS_SSL_PTR, v); }

static inline CURLMcode ccurl_multi_set_long(CURLM *h, CURLMoption o, long v) { return curl_multi_setopt(h, o, v); }
static inline CURLMcode ccurl_multi_set_pointer(CURLM *h, CURLMoption o, void *v) { return curl_multi_setopt(h, o, v); }
static inline CURLMcode ccurl_multi_set_socket_function(CURLM *h, ccurl_socket_function v) { return curl_multi_setopt(h, CURLMOPT_SOCKETFUNCTION, v); }
static inline CURLMcode ccurl_multi_set_timer_function(CURLM *h, ccurl_timer_function v) { return curl_multi_setopt(h, CURLMOPT_TIMERFUNCTION, v); }

// Members of unions and flexible parts that Swift cannot name.
static inline CURL *ccurl_message_easy(const CURLMsg *m) { return m->easy_handle; }
static inline CURLcode ccurl_message_result(const CURLMsg *m) { return m->data.result; }
static inline const struct sockaddr *ccurl_address(const struct curl_sockaddr *a) { return &a->addr; }
