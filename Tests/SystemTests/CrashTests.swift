import Base
import Core
import Glibc
import TestSupport
import Testing

/// docs/operating.md "Crashes": no task can keep the service down.
@Suite struct CrashTests {
    private static let faults = [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE]

    /// Ends the service with a fault's signal and restarts it.
    private func crash(_ scene: Scene, by signal: Int32 = SIGSEGV) async throws {
        scene.service.signal(signal)
        #expect(try await scene.service.waitForExit() == .killed(signal))
        try await scene.service.start()
    }

    @Test func `Each fault kills the process as before, and leaves a marker that the next start counts once`()
        async throws
    {
        let scene = try await Scene()
        let mark = scene.service.data.file("data/crashed")
        for signal in Self.faults {
            scene.service.signal(signal)
            #expect(try await scene.service.waitForExit() == .killed(signal))
            #expect(readFile(mark) == Array((signal < 10 ? "0\(signal)\n" : "\(signal)\n").utf8))
            try await scene.service.start()
            #expect(readFile(mark) == nil)
        }
        try await scene.service.restart()
        #expect(readFile(mark) == nil)
    }

    @Test func `A fault reaches its handler on every thread`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 200_000))
        try await scene.completed(try await scene.download("/a"))
        let tasks = "/proc/\(scene.service.pid)/task"
        let threads = try #require(names(in: tasks))
        #expect(threads.count > 8)
        for thread in threads {
            let status = String(decoding: readFile("\(tasks)/\(thread)/status") ?? [], as: UTF8.self)
            guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("SigBlk:") }),
                let blocked = UInt64(line.split(separator: "\t").last ?? "", radix: 16)
            else { continue }
            // abort(3) unblocks its own signal.
            for signal in Self.faults where signal != SIGABRT {
                #expect(blocked & 1 << UInt64(signal - 1) == 0, "\(signal)\n\(status)")
            }
        }
    }

    @Test func `A task that crashes the service three times fails, and the other tasks resume`() async throws {
        let scene = try await Scene(configuration: ["timeoutIntervalForRequest": 60])
        let (patience, silence) = (Gate(), Gate())
        let length = 300_000
        scene.origin.serve("/good", .generated(seed: 1, length: length), always: [.holdBody(after: 100_000, patience)])
        scene.origin.serve("/bad", .text("x"), always: [.hold(silence)])
        scene.origin.serve("/later", .text("later"))
        let good = try await scene.download("/good")
        let bad = try await scene.download("/bad")
        for _ in 1...2 {
            try await eventually("both are under way") { patience.waiting == 1 && silence.waiting == 1 }
            try await crash(scene)
            try await eventually("the origin sees it gone") { patience.waiting + silence.waiting <= 2 }
        }
        // The suspects wait for their turn, and other tasks do not wait for them.
        let suspect = try await scene.task(bad)
        #expect(suspect["state"] == "running" && suspect["waitingFor"][0]["detail"].string != nil, "\(suspect)")
        patience.open()
        #expect(try await scene.completed(good)["outcome"] == "succeeded")
        #expect(try await scene.content(good).body == Content.bytes(seed: 1, length: length))
        try await eventually("the suspect is tried") { silence.waiting == 1 }
        let later = try await scene.download("/later")
        try await stays("it runs alone", for: .milliseconds(500)) { scene.origin.requests("/later").isEmpty }
        try await crash(scene)
        let failed = try await scene.completed(bad)
        #expect(failed["outcome"] == "failed" && failed["error"]["code"] == -1, "\(failed)")
        #expect(failed["error"]["underlying"]["domain"] == "urlsessiond", "\(failed)")
        #expect(failed["error"]["underlying"]["code"] == "crashed-service", "\(failed)")
        #expect(try await scene.completed(later)["outcome"] == "succeeded")
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events).count == 3)
    }

    @Test func `Kills do not count, however many there are beside a crash`() async throws {
        let scene = try await Scene(configuration: ["timeoutIntervalForRequest": 60])
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 300_000), always: [.holdBody(after: 100_000, gate)])
        let number = try await scene.download("/a")
        for round in 1...6 {
            try await eventually("it is under way in round \(round)") { gate.waiting == 1 }
            if round == 3 { try await crash(scene) } else { try await scene.service.restart() }
            try await eventually("the origin sees it gone") { scene.origin.requests("/a").count >= round + 1 }
        }
        gate.open()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded" && task["attempts"]["count"] == 1, "\(task)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 300_000))
    }
}

/// The names in a folder.
private func names(in path: String) -> [String]? {
    guard let folder = opendir(path) else { return nil }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if !name.hasPrefix(".") { names.append(name) }
    }
    return names
}
