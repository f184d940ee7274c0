import Base
package import Core

/// What the operator decides about transfers and storage.
package struct ServiceSettings: Sendable {
    /// The data folder, absolute.
    package var dataFolder: String
    package var version: String
    package var maximumTransfers = 256
    package var maximumTransfersPerHost = 32
    package var egress: EgressPolicy
    /// Names that tasks may use for `root`, and their folders.
    package var filesRoots: [String: String] = [:]
    package var contentRetention = Duration.seconds(24 * 3600)
    package var unacknowledgedRetention = Duration.seconds(30 * 24 * 3600)
    /// Below this many free bytes new content waits and writes are refused.
    package var freeDiskFloor: Int64 = 1 << 30
    /// The longest content of a task that names no limit of its own.
    package var maximumContentLength: Int64 = 1 << 40
    /// The longest stored body.
    package var maximumBodyLength: Int64 = 1 << 40
    /// How long a question stays open.
    package var questionDeadline = Duration.seconds(24 * 3600)
    /// How long a session counts as attached after its client left.
    package var detachGrace = Duration.seconds(5)
    /// How busy the machine is, where that is known.
    package var load: @Sendable () -> Double? = { SystemLoad().current() }

    package init(dataFolder: String, version: String, egress: EgressPolicy) {
        self.dataFolder = dataFolder
        self.version = version
        self.egress = egress
    }
}

extension ServiceSettings {
    /// The file that a fault of the process leaves in a data folder before it kills, and that the next start counts.
    package static func crashMark(in dataFolder: String) -> String { "\(dataFolder)/\(DataFolder.crashMark)" }
}

/// Files below the data folder, by what they are for.
struct DataFolder: Sendable {
    let path: String

    /// Left by a fault of the process.
    static let crashMark = "crashed"

    func absolute(_ relative: String) -> String { "\(path)/\(relative)" }

    /// Where the bytes of a transfer under way are kept.
    func partial(_ task: TaskID) -> String { "partial/\(task.rawValue)" }

    /// Where a finished content goes. The last two digits spread the files over folders.
    func content(_ task: TaskID) -> String { "contents/\(Self.shard(task.rawValue))/\(task.rawValue)" }

    func body(_ publicId: String) -> String {
        "bodies/\(Self.shard(publicId.utf8.reduce(0) { ($0 &* 31 &+ Int64($1)) & 0xFF }))/\(publicId)"
    }

    /// The folders that must be there before the first file.
    static var folders: [String] {
        ["partial", "contents", "bodies"]
            + (0..<256).flatMap { ["contents/\(shard(Int64($0)))", "bodies/\(shard(Int64($0)))"] }
    }

    private static func shard(_ number: Int64) -> String {
        let digits = String(number & 0xFF, radix: 16)
        return digits.count < 2 ? "0" + digits : digits
    }
}
