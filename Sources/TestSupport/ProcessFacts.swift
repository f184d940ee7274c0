import Glibc

/// A process, by Linux' figures.
package struct ProcessFacts: Sendable {
    package let pid: Int32

    package init(pid: Int32) { self.pid = pid }

    package static var canLimitDescriptors: Bool { access(prlimit, X_OK) == 0 }

    private static let prlimit = "/usr/bin/prlimit"

    /// Limits the process to descriptors below this number.
    package func limitDescriptors(below number: Int) async throws {
        try await ChildProcess.run([Self.prlimit, "--pid", "\(pid)", "--nofile=\(number):"])
    }

    /// The numbers of its open descriptors.
    package var descriptors: [Int] {
        get async throws {
            let listing = try await ChildProcess.run(["/bin/ls", "/proc/\(pid)/fd"])
            return String(decoding: listing, as: UTF8.self).split(separator: "\n").compactMap { Int($0) }
        }
    }

    /// The CPU time that it has used (`utime` and `stime` of proc(5)).
    package var processorTime: Duration {
        let stat = String(decoding: readFile("/proc/\(pid)/stat") ?? [], as: UTF8.self)
        let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
        let ticks = fields.count > 12 ? (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0) : 0
        return .seconds(1) * Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
