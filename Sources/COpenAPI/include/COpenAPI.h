// The service's description as bytes of the program: openapi.yaml at the top of the repository, and the same as JSON; and
// docs/problems.md.
#ifndef COPENAPI_H
#define COPENAPI_H

#include <stddef.h>

extern const unsigned char openapi_yaml[];
extern const size_t openapi_yaml_length;
extern const unsigned char openapi_json[];
extern const size_t openapi_json_length;
extern const unsigned char problems_markdown[];
extern const size_t problems_markdown_length;

// Swift does not see arrays without a length.
static inline const unsigned char *openapi_yaml_start(void) { return openapi_yaml; }
static inline const unsigned char *openapi_json_start(void) { return openapi_json; }
static inline const unsigned char *problems_markdown_start(void) { return problems_markdown; }

#endif
