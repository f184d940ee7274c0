import Base

/// The limits of one client, or of all together. Durations are absolute deadlines unless stated otherwise.
package struct ServerLimits: Sendable {
    /// The maximum of open connections; a further one is closed without a response.
    package var connections = 4096
    /// Threads of libmicrohttpd that read and write sockets, at least 2.
    package var threads = max(2, min(8, SystemLoad.cores))
    /// The memory that libmicrohttpd reserves for a connection, for heads and for its reads and writes, in bytes. It
    /// touches half at the start of a response and all of it afterwards, so this is the cost of an idle connection. An
    /// idle stream returns all but two pages.
    package var connectionMemory = 40_960
    package var headBytes = 32_768
    package var targetBytes = 8192
    /// From the connection, or from a later request's first line, to the end of the head. A later first line must be
    /// complete within `inactivity` and this time after the response before.
    package var headDeadline: Duration = .seconds(10)
    /// From a response inside a body that the library cannot send yet to the end of the body.
    package var bodyDeadline: Duration = .seconds(30)
    /// Silence in either direction: between requests, inside one, and while a response is not read. libmicrohttpd then
    /// closes the connection without a response, so this is longer than the deadlines of bodies, which end with 408.
    package var inactivity: Duration = .seconds(35)
    /// A streamed body may be slower than `streamBytesPerSecond` for this long.
    package var streamGrace: Duration = .seconds(10)
    package var streamBytesPerSecond = 1024

    package init() {}
}

extension Duration {
    /// Whole milliseconds, rounded down.
    var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
