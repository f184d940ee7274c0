// What the C importer leaves out of <zlib.h>: deflateInit2, a macro.
#include <zlib.h>

/// deflateInit2 for gzip's format, with its default strategy.
static inline int deflateInit_gzip(z_stream *stream, int level, int windowBits, int memoryLevel) {
    return deflateInit2(stream, level, Z_DEFLATED, windowBits + 16, memoryLevel, Z_DEFAULT_STRATEGY);
}
