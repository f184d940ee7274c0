// The files of the page at / and of the reference at /docs, as bytes of the program.
#ifndef CPAGE_H
#define CPAGE_H

#include <stddef.h>

typedef struct {
    const char *name;
    const unsigned char *bytes;
    size_t length;
} page_file;

extern const page_file page_files[];
extern const size_t page_files_count;

// Swift does not see arrays without a length.
static inline const page_file *page_files_start(void) { return page_files; }

#endif
