import Glibc

/// The load of the machine: the ratio of waiting to running time of work.
///
/// 0 means that nothing waits, 1 that work waits half of the time, 2 two thirds of it. The values are the kernel's
/// pressure figures (PSI) of processors, disks and memory, of the machine and of the service's control group. The worst
/// counts: a container may be throttled on an idle machine. Without PSI the value is the load average per processor,
/// which is 1 if the processors just suffice.
package struct SystemLoad: Sendable {
    /// The root of `proc` and `sys`; another folder in tests.
    private let root: String

    package init(root: String = "") { self.root = root }

    /// The load of the last minute; `nil` if the kernel does not report it.
    package func current() -> Double? {
        let folders = ["/proc/pressure/"] + [controlGroup].compactMap { $0 }
        let shares = folders.flatMap { folder in
            ["cpu", "io", "memory"].compactMap { name in
                read(folder.hasSuffix("/") ? folder + name : "\(folder)/\(name).pressure").flatMap(Pressure.share)
            }
        }
        return shares.max().map(Pressure.load) ?? Self.averagePerProcessor()
    }

    /// The folder of the service's control group (version 2).
    private var controlGroup: String? {
        read("/proc/self/cgroup").flatMap(Pressure.controlGroup).map { "/sys/fs/cgroup" + ($0 == "/" ? "" : $0) }
    }

    /// A small file as text; `nil` if it is missing or unreadable. Pressure files are unreadable if PSI is off.
    func read(_ path: String) -> String? {
        let descriptor = open(root + path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let bytes = [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
            count = max(0, Glibc.read(descriptor, buffer.baseAddress, buffer.count))
        }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    package static var cores: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// The load average of the last minute per processor.
    ///
    /// The corresponding C function is `getloadavg`.
    static func averagePerProcessor() -> Double? {
        var averages = [0.0]
        guard getloadavg(&averages, 1) == 1 else { return nil }
        return averages[0] / Double(cores)
    }
}

/// The kernel's pressure stall information in its file format (`Documentation/accounting/psi.rst`).
enum Pressure {
    /// The fraction of the last minute in which some work waited, 0…1: `avg60` of the line `some`.
    static func share(_ text: String) -> Double? {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.first == "some" else { continue }
            let average = words.first { $0.hasPrefix("avg60=") }
            guard let percent = average.flatMap({ Double($0.dropFirst("avg60=".count)) }), (0...100).contains(percent)
            else { return nil }
            return percent / 100
        }
        return nil
    }

    /// The ratio of waiting to running time.
    static func load(_ share: Double) -> Double { share / max(1 - share, 0.0001) }

    /// The path of the process's control group in the unified hierarchy, from `/proc/self/cgroup`.
    static func controlGroup(_ text: String) -> String? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("0::/") }
        // A group outside of the container's view begins with `/..`, and has no file here.
        return line.map { String($0.dropFirst(3)) }.flatMap { $0.contains("/..") ? nil : $0 }
    }
}
