import Base
import Foundation
import TestSupport
import Testing
import URLSessionClient
import Wire

/// Contents saved to files and files stored as bodies, in pieces.
struct StreamingTests {
    typealias House = ClientTests.House
    /// Two complete pieces and a partial one.
    private static let length = 9_000_000

    let folder = TemporaryFolder()

    private func digest(of name: String) -> String? {
        readFile(folder.file(name)).map { TestSupport.Content.sha256(of: $0) }
    }

    /// A finished download of `length` bytes.
    private func downloaded(_ house: House, length: Int = Self.length) async throws -> Int64 {
        house.origin.serve("/a", .generated(seed: 7, length: length))
        let number = try await house.download("/a")
        #expect(try await house.client.task(number, in: "s", waiting: 60).outcome == .succeeded)
        return number
    }

    /// The reports of progress.
    private final class Steps: Sendable {
        private let steps = Locked<[Int64]>([])
        func add(_ step: Int64) { steps.withLock { $0.append(step) } }
        var all: [Int64] { steps.withLock { $0 } }
    }

    @Test func `A long content is written to a file in pieces`() async throws {
        let house = try await House()
        let number = try await downloaded(house)
        let steps = Steps()
        let content = try await house.client.content(ofTask: number, in: "s", to: folder.file("a")) {
            received, length in
            #expect(length == Self.length)
            steps.add(received)
        }
        #expect(content.length == Self.length && digest(of: "a") == content.digest.value)
        #expect(steps.all == [0, 4 << 20, 8 << 20, Int64(Self.length)])
        #expect(filesBelow(folder.path) == ["a"])
    }

    @Test func `An empty content is an empty file`() async throws {
        let house = try await House()
        let number = try await downloaded(house, length: 0)
        try await house.client.content(ofTask: number, in: "s", to: folder.file("a"))
        #expect(readFile(folder.file("a")) == [])
        try await house.client.content(ofTask: number, in: "s") { piece in #expect(piece.bytes.isEmpty) }
    }

    @Test func `An existing file stays, unless it may be replaced`() async throws {
        let house = try await House()
        let number = try await downloaded(house, length: 100_000)
        try Data("mine".utf8).write(to: URL(filePath: folder.file("a")))
        let error = await #expect(throws: ClientError.self) {
            try await house.client.content(ofTask: number, in: "s", to: folder.file("a"))
        }
        #expect(error == .file(folder.file("a"), code: EEXIST))
        #expect(readFile(folder.file("a")) == Array("mine".utf8) && filesBelow(folder.path) == ["a"])
        try await house.client.content(ofTask: number, in: "s", to: folder.file("a"), replacing: true)
        #expect(readFile(folder.file("a"))?.count == 100_000 && filesBelow(folder.path) == ["a"])
    }

    @Test(arguments: [true, false])
    func `A partial file is resumed, or restarted if it has other bytes`(_ isSound: Bool) async throws {
        let house = try await House()
        let number = try await downloaded(house, length: 100_000)
        let content = try #require(try await house.client.task(number, in: "s").content)
        var bytes = try await house.client.content(ofTask: number, in: "s").prefix(60_000)
        if !isSound { bytes[1000] ^= 1 }
        try Data(bytes).write(to: URL(filePath: folder.file(".a.part-\(content.digest.value.prefix(16))")))
        let steps = Steps()
        try await house.client.content(ofTask: number, in: "s", to: folder.file("a")) { received, _ in
            steps.add(received)
        }
        #expect(digest(of: "a") == content.digest.value && filesBelow(folder.path) == ["a"])
        #expect(steps.all == (isSound ? [60_000, 100_000] : [60_000, 100_000, 0, 100_000]))
    }

    @Test func `A kill of the service delays a content and loses nothing`() async throws {
        let house = try await House()
        let number = try await downloaded(house)
        let (folder, steps) = (folder, Steps())
        let saving = Task {
            try await house.client.content(ofTask: number, in: "s", to: folder.file("a")) { received, _ in
                steps.add(received)
                // Not only for the piece in flight, but for all later ones.
                if received == 4 << 20 { house.service.signal(SIGKILL) }
            }
        }
        try await house.service.waitForExit()
        try await house.service.start()
        let content = try await saving.value
        #expect(digest(of: "a") == content.digest.value)
        #expect(steps.all == [0, 4 << 20, 8 << 20, Int64(Self.length)])
    }

    // MARK: While it arrives

    /// Bytes in the order of their arrival.
    private final class Arrived: Sendable {
        private let bytes = Locked<[UInt8]>([])
        func add(_ offset: Int64, _ more: Data) {
            bytes.withLock {
                #expect(offset == $0.count)
                $0 += more
            }
        }
        var all: [UInt8] { bytes.withLock { $0 } }
    }

    @Test(arguments: [true, false])
    func `A download is read while it arrives, across a kill of the service`(hasLength: Bool) async throws {
        let house = try await House()
        let (gate, arrived) = (Gate(), Arrived())
        let framing = hasLength ? [] : [Misbehaviour.chunked(size: 64 << 10)]
        house.origin.serve(
            "/a", .generated(seed: 7, length: Self.length), turns: [framing + [.holdBody(after: 6 << 20, gate)]])
        let number = try await house.download("/a")
        let reading = Task {
            try await house.client.arrivingContent(ofTask: number, in: "s") { arrived.add($0, $1) }
        }
        try await eventually("the first bytes") { arrived.all.count > 1 << 20 }
        try await house.service.kill()
        try await house.service.start()
        try await reading.value
        #expect(arrived.all == TestSupport.Content.bytes(seed: 7, length: Self.length))
        let rest = Locked<[UInt8]>([])
        try await house.client.arrivingContent(ofTask: number, in: "s", from: Int64(Self.length) - 10) { _, bytes in
            rest.withLock { $0 += bytes }
        }
        #expect(rest.withLock { $0 } == arrived.all.suffix(10))
        gate.open()
    }

    @Test func `A download of unknown length is read to its end while it arrives`() async throws {
        let house = try await House()
        let (gate, arrived) = (Gate(), Arrived())
        house.origin.serve(
            "/a", .generated(seed: 7, length: Self.length),
            turns: [[.chunked(size: 64 << 10), .holdBody(after: 6 << 20, gate)]])
        let number = try await house.download("/a")
        let reading = Task {
            try await house.client.arrivingContent(ofTask: number, in: "s") { arrived.add($0, $1) }
        }
        try await eventually("the first bytes") { arrived.all.count > 1 << 20 }
        gate.open()
        try await reading.value
        #expect(arrived.all == TestSupport.Content.bytes(seed: 7, length: Self.length))
    }

    @Test func `A reader receives an error if the download restarts or fails`() async throws {
        let house = try await House()
        let (gate, arrived) = (Gate(), Arrived())
        house.origin.serve(
            "/a", .generated(seed: 7, length: Self.length),
            turns: [[.cut(after: 6 << 20)], [.hold(gate), .become(.generated(seed: 8, length: Self.length))]])
        let number = try await house.download("/a")
        let reading = Task {
            try await house.client.arrivingContent(ofTask: number, in: "s") { arrived.add($0, $1) }
        }
        try await eventually("the first bytes") { arrived.all.count > 1 << 20 }
        gate.open()
        let changed = await #expect(throws: ClientError.self) { try await reading.value }
        #expect(changed == .contentChanged)
        #expect(arrived.all == TestSupport.Content.bytes(seed: 7, range: 0..<arrived.all.count))

        house.origin.serve("/b", .generated(seed: 7, length: 1000), always: [.hold(Gate())])
        let other = try await house.download("/b")
        let waiting = Task { try await house.client.arrivingContent(ofTask: other, in: "s") { _, _ in } }
        try await house.origin.waitForRequests(1, path: "/b")
        _ = try await house.client.command(.cancel, task: other, in: "s")
        let failed = await #expect(throws: Problem.self) { try await waiting.value }
        #expect(failed?.code == .notFound)
        struct Full: Error {}
        await #expect(throws: Full.self) {
            try await house.client.arrivingContent(ofTask: number, in: "s") { _, _ in throw Full() }
        }
    }

    @Test func `A cancelled reader receives an error, not an end`() async throws {
        let house = try await House()
        let (gate, arrived) = (Gate(), Arrived())
        house.origin.serve(
            "/a", .generated(seed: 7, length: Self.length), always: [.holdBody(after: 6 << 20, gate)])
        let number = try await house.download("/a")
        let reading = Task {
            try await house.client.arrivingContent(ofTask: number, in: "s") { arrived.add($0, $1) }
        }
        try await eventually("the first bytes") { arrived.all.count > 1 << 20 }
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
        gate.open()
    }

    @Test(arguments: [5, 5 << 20]) func `A file is stored by a service that is not ready at once`(_ length: Int)
        async throws
    {
        let isReady = Locked(false)
        let service = try Receiver { _ in
            let wasReady = isReady.withLock { isReady in
                defer { isReady = true }
                return isReady
            }
            var answer = Receiver.Answer.status(wasReady ? 200 : 503)
            answer.body =
                wasReady ? StoredBody { $0.id = "body_1" }.jsonBytes : Problem(.shuttingDown, "Soon.").jsonBytes
            return answer
        }
        let client = Client(url: try #require(URL(string: "http://127.0.0.1:\(service.port)")), key: "k")
        let file = folder.write([UInt8](repeating: 1, count: length), to: "a")
        #expect(try await client.storeBody(fileAt: file).id == "body_1")
        #expect(service.deliveries.count { $0.method == "POST" } == 2)
    }

    @Test func `A long file becomes a body in pieces, across a kill of the service`() async throws {
        let house = try await House()
        let bytes = (0..<Self.length).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) }
        try Data(bytes).write(to: URL(filePath: folder.file("a")))
        let (folder, steps) = (folder, Steps())
        let storing = Task {
            try await house.client.storeBody(fileAt: folder.file("a")) { stored, _ in
                steps.add(stored)
                if stored == 4 << 20, steps.all.count == 2 { house.service.signal(SIGKILL) }
            }
        }
        try await house.service.waitForExit()
        try await house.service.start()
        let body = try await storing.value
        #expect(body.length == Int64(Self.length) && body.digest?.value == TestSupport.Content.sha256(of: bytes))
        #expect(steps.all.last == Int64(Self.length))
        #expect(try await house.client.body(body.id) == body)
        #expect(try await house.client.bodies(complete: false).items.isEmpty)
    }

    @Test func `A cancelled upload leaves no body`() async throws {
        let house = try await House()
        try Data(count: Self.length).write(to: URL(filePath: folder.file("a")))
        let folder = folder
        let storing = Task {
            try await house.client.storeBody(fileAt: folder.file("a")) { stored, _ in
                if stored == 4 << 20 { withUnsafeCurrentTask { $0?.cancel() } }
            }
        }
        await #expect(throws: (any Error).self) { try await storing.value }
        #expect(try await house.client.bodies().items.isEmpty)
    }

    @Test func `An unreadable file is named`() async throws {
        let client = Client(url: try #require(URL(string: "http://127.0.0.1:1")), key: "dev")
        let absent = folder.file("absent")
        let error = await #expect(throws: ClientError.self) { try await client.storeBody(fileAt: absent) }
        #expect(error == .file(absent, code: ENOENT))
    }
}
