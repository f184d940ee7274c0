import CMicroHTTPD

/// A connection of libmicrohttpd. Corresponds to `struct MHD_Connection *`.
///
/// Unchecked: off the library's threads only ``resume()`` is called, and only on a suspended connection, which the
/// library keeps until it is resumed.
struct ConnectionHandle: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Call from the access handler or a content reader, never twice without a resume in between.
    func suspend() { MHD_suspend_connection(pointer) }

    /// "It is safe to resume a suspended connection at any time", from any thread.
    func resume() { MHD_resume_connection(pointer) }
}
