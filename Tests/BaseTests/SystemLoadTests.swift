import Glibc
import Testing

@testable import Base

@Suite struct SystemLoadTests {
    static func file(_ some: String, _ full: String = "0.00") -> String {
        "some avg10=99.00 avg60=\(some) avg300=88.00 total=6841999823\n"
            + "full avg10=77.00 avg60=\(full) avg300=66.00 total=7\n"
    }

    @Test(
        arguments: [
            (file("0.00"), 0), (file("50.00", "49.00"), 0.5), (file("100.00"), 1),
            ("some avg10=1.00 avg60=12.50 avg300=2.00 total=1", 0.125), ("", nil),
            ("full avg10=1.00 avg60=2.00 avg300=3.00 total=4\n", nil), ("some avg10=1.00 avg60=x total=4\n", nil),
            ("some avg10=1.00 avg60=-1.00\n", nil), ("some avg10=1.00 avg60=nan\n", nil), ("some avg10=1.00\n", nil),
        ] as [(String, Double?)])
    func `The pressure of the last minute is read`(_ text: String, _ share: Double?) {
        #expect(Pressure.share(text) == share)
    }

    @Test func `Load is the ratio of waiting time to time without waiting`() {
        #expect(Pressure.load(0) == 0)
        #expect(Pressure.load(0.5) == 1)
        #expect(abs(Pressure.load(0.75) - 3) < 1e-9)
        #expect(Pressure.load(1) == 10_000)
    }

    @Test(
        arguments: [
            ("0::/system.slice/urlsessiond.service\n", "/system.slice/urlsessiond.service"), ("0::/\n", "/"),
            ("12:cpu:/a\n0::/b\n", "/b"), ("12:cpu:/a\n", nil), ("0::/../other\n", nil), ("", nil),
        ] as [(String, String?)])
    func `The unified control group is found`(_ text: String, _ path: String?) {
        #expect(Pressure.controlGroup(text) == path)
    }

    @Test func `The higher figure of machine and control group counts`() throws {
        let tree = try Tree()
        try tree.write("proc/pressure/cpu", Self.file("20.00"))
        try tree.write("proc/pressure/io", Self.file("50.00"))
        try tree.write("proc/pressure/memory", Self.file("0.00", "99.00"))
        let load = SystemLoad(root: tree.path)
        #expect(load.current() == 1)
        try tree.write("proc/self/cgroup", "0::/service\n")
        #expect(load.current() == 1)
        try tree.write("sys/fs/cgroup/service/cpu.pressure", Self.file("80.00"))
        #expect(abs((load.current() ?? 0) - 4) < 1e-9)
        // A container sees its own group as the root.
        try tree.write("proc/self/cgroup", "0::/\n")
        #expect(load.current() == 1)
        try tree.write("sys/fs/cgroup/memory.pressure", Self.file("75.00"))
        #expect(abs((load.current() ?? 0) - 3) < 1e-9)
    }

    @Test func `A kernel without pressure figures has a load average`() throws {
        let tree = try Tree()
        let average = try #require(SystemLoad.averagePerProcessor())
        let load = try #require(SystemLoad(root: tree.path).current())
        // The average changes every five seconds.
        #expect(abs(load - average) < 1 + average)
        try tree.write("proc/pressure/cpu", "no figures\n")
        #expect(SystemLoad(root: tree.path).current() != nil)
    }

    @Test(.enabled(if: access("/proc/pressure/cpu", R_OK) == 0)) func `This machine has a load`() throws {
        #expect(try #require(SystemLoad().current()) >= 0)
    }
}

/// A folder that replaces the root of a machine.
private final class Tree {
    let path: String
    private var made: [String] = []

    init() throws {
        var template = Array("/tmp/urlsessiond-load-XXXXXX".utf8CString)
        path = String(cString: try #require(mkdtemp(&template)))
        made.append(path)
    }

    func write(_ name: String, _ text: String) throws {
        var folder = path
        for part in name.split(separator: "/").dropLast() {
            folder += "/" + part
            if mkdir(folder, 0o700) == 0 { made.append(folder) }
        }
        let file = try #require(fopen("\(path)/\(name)", "w"))
        fputs(text, file)
        fclose(file)
        made.append("\(path)/\(name)")
    }

    deinit { for path in made.reversed() { remove(path) } }
}
