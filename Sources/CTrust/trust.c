// FoundationNetworking has no setting for the certificates that a URLSession trusts on Linux. It makes each of its
// connections of a handle of libcurl, and finds this function before libcurl's own: a program's symbols come first.

#define _GNU_SOURCE
#include "CTrust.h"
#include <dlfcn.h>
#include <string.h>

typedef void *(*easy_init)(void);
typedef int (*easy_setopt)(void *, int, ...);

/// CURLOPT_CAINFO of curl.h, which is no header that the command line needs otherwise.
enum { cainfo = 10065 };

static char *certificates;

void trust_certificates(const char *path) { certificates = strdup(path); }

void *curl_easy_init(void) {
    easy_init init = (easy_init)dlsym(RTLD_NEXT, "curl_easy_init");
    easy_setopt set = (easy_setopt)dlsym(RTLD_NEXT, "curl_easy_setopt");
    void *handle = init ? init() : 0;
    if (handle && set && certificates) set(handle, cainfo, certificates);
    return handle;
}
