import Base

/// What one client, or all together, may take. Durations are absolute deadlines unless they say otherwise.
package struct ServerLimits: Sendable {
    /// Open connections; one more is closed without an answer.
    package var connections = 4096
    /// Threads of libmicrohttpd that read and write sockets, at least 2.
    package var threads = max(2, min(8, SystemLoad.cores))
    /// Bytes libmicrohttpd reserves a connection, for heads and what it reads and writes at once. It touches half
    /// when an answer begins and all after it, so this is what an idle connection costs; an idle stream gives all but
    /// two pages back.
    package var connectionMemory = 40_960
    package var headBytes = 32_768
    package var targetBytes = 8192
    /// From the connection (or the end of the idle time after an answer) to the end of a request's head.
    package var headDeadline: Duration = .seconds(10)
    /// From an answer inside a body, where the library cannot send it yet, to the end of the body.
    package var bodyDeadline: Duration = .seconds(30)
    /// Silence in either direction: between requests, inside one, and while an answer is not taken.
    package var inactivity: Duration = .seconds(30)
    /// A streamed body may be slower than `streamBytesPerSecond` for this long.
    package var streamGrace: Duration = .seconds(10)
    package var streamBytesPerSecond = 1024

    package init() {}
}

extension Duration {
    /// Whole milliseconds, rounded down.
    var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
