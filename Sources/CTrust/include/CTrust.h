#ifndef CTRUST_H
#define CTRUST_H

/// From now on TLS connections of this process trust the certificates of a PEM file, in place of those of the machine.
///
/// The path is copied. Call this before the first connection, from one thread.
void trust_certificates(const char *path);

#endif
