#include "COpenAPI.h"

// #embed is of C23; the compiler takes it in older dialects too, and knows that this file depends on these three.
#pragma clang diagnostic ignored "-Wc23-extensions"

const unsigned char openapi_yaml[] = {
#embed "../../openapi.yaml"
};
const size_t openapi_yaml_length = sizeof openapi_yaml;

// Made of openapi.yaml by scripts/embed-openapi; a test compares the two.
const unsigned char openapi_json[] = {
#embed "openapi.json"
};
const size_t openapi_json_length = sizeof openapi_json;

const unsigned char problems_markdown[] = {
#embed "../../docs/problems.md"
};
const size_t problems_markdown_length = sizeof problems_markdown;
