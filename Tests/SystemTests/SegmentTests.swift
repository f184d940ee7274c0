import Base
import Core
import Glibc
import TestSupport
import Testing

/// docs/transfers.md "Segments and mirrors" from outside: kills, mirrors and documents.
@Suite struct SegmentTests {
    private static let size = 64 << 20
    private static let configuration: JSON = [
        "httpMaximumConnectionsPerHost": 16,
        "retryPolicy": ["statusCodes": [503], "initialDelay": 0.1, "maximumDelay": 0.2],
    ]

    @Test
    func `Kills repeat at most 8 MiB each, over all segments`() async throws {
        let (kills, whole) = (3, Content.bytes(seed: 1, length: Self.size))
        let scene = try await Scene(configuration: Self.configuration)
        // Slow enough that it does not end before the last kill: five eighths of it take four seconds.
        let slowly = [Misbehaviour.trickle(size: 64 << 10, pause: .milliseconds(100))]
        scene.origin.serve("/a", .generated(seed: 1, length: Self.size), always: slowly)
        let number = try await scene.download("/a", ["segments": 16])
        // A kill leaves few unrecorded bytes: more are added where nothing is fetched before the end.
        let added = Self.size - (1 << 20)
        var lost = 1 << 20
        for kill in 1...kills {
            let received = try await eventually("bytes enough for kill \(kill)") { () -> Int? in
                let received = try await scene.task(number)["countOfBytesReceived"].int ?? 0
                return received > Self.size / 8 * kill ? received : nil
            }
            try await scene.service.kill()
            let progress = try await scene.storedProgress()
            let record = try #require(progress?.kept.segments, "\(progress as Any)")
            let partial = "\(scene.service.data.file("data"))/partial/1"
            lost += Self.bytes(of: Array(whole[..<added]), in: readFile(partial) ?? [], outside: record)
            if kill == 1 { Self.write(whole[added...], to: partial, at: added) }
            try await scene.service.start()
            let kept = try await scene.task(number)["countOfBytesReceived"].int ?? 0
            #expect(received - kept <= 8 << 20)
        }
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded")
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 1, length: Self.size))
        // Plus the bytes in the buffers of sixteen connections.
        let most = Self.size + kills * (8 << 20) + kills * 16 * (1 << 20)
        #expect(scene.origin.bytesSent("/a") < most)
        #expect(task["segmentStates"] == .null)
        // A filesystem reports written bytes in whole blocks.
        let twice = try #require(task["countOfBytesFetchedTwice"].int)
        #expect(abs(twice - lost) < kills * 16 * 2 * 4096, "\(twice) and not \(lost)")
    }

    private static func write(_ bytes: ArraySlice<UInt8>, to path: String, at offset: Int) {
        let file = open(path, O_WRONLY | O_CLOEXEC)
        defer { close(file) }
        #expect(bytes.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(offset)) } == bytes.count)
    }

    /// The bytes of a content in a partial file that its record does not have.
    private static func bytes(of whole: [UInt8], in file: [UInt8], outside record: SegmentRecord) -> Int {
        stride(from: 0, to: min(whole.count, file.count), by: 4096).reduce(0) { count, start in
            let block = start..<min(start + 4096, whole.count, file.count)
            let isRecorded = record.held.contains { $0.offset < block.upperBound && $0.end > block.lowerBound }
            return isRecorded || file[block] != whole[block] ? count : count + block.count
        }
    }

    @Test
    func `The segments of a task are shown while it runs`() async throws {
        let scene = try await Scene(configuration: Self.configuration)
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 16 << 20), always: [.holdBody(after: 300_000, gate)])
        let number = try await scene.download("/a", ["segments": 4])
        let task = try await eventually("four segments") { () -> JSON? in
            let task = try await scene.task(number)
            let states = task["segmentStates"].array ?? []
            return states.count { $0["received"].int ?? 0 > 0 } >= 4 ? task : .none
        }
        let states = task["segmentStates"].array ?? []
        #expect(states.first?["offset"] == 0)
        #expect(states.allSatisfy { $0["source"] == 0 && $0["received"].int ?? 0 <= $0["length"].int ?? 0 })
        #expect(task["segments"] == 4)
        #expect(task["countOfBytesExpectedToReceive"].int == 16 << 20)
        gate.open()
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
    }

    @Test
    func `A Metalink document becomes a download from all its sources`() async throws {
        let scene = try await Scene(configuration: Self.configuration)
        scene.origin.serve("/b", .generated(seed: 1, length: 1000))
        let document = """
            <?xml version="1.0" encoding="UTF-8"?>
            <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a"><size>1000</size>
            <hash type="sha-256">\(Content.sha256(seed: 1, length: 1000))</hash>
            <url priority="2">\(scene.origin.url("/b"))</url><url priority="1">\(scene.origin.url("/missing"))</url>
            </file></metalink>
            """
        let answer = try await scene.api.send(
            "POST", "/v1/sessions/s/tasks", headers: [("Content-Type", "application/metalink4+xml")],
            body: Array(document.utf8))
        #expect(answer.status == 201)
        #expect(answer.json["mirrors"] == [.string(scene.origin.url("/b"))])
        let task = try await scene.completed(answer.json["taskIdentifier"].int ?? 0)
        #expect(task["outcome"] == "succeeded")
        #expect(task["content"]["length"] == 1000)
    }

    @Test(arguments: [
        ("<a", 400, "malformed-json"), ("<!DOCTYPE a><a/>", 400, "malformed-json"), ("<a/>", 422, "invalid-value"),
    ])
    func `An invalid document creates nothing`(text: String, status: Int, code: String) async throws {
        let scene = try await Scene()
        let answer = try await scene.api.send(
            "POST", "/v1/sessions/s/tasks", headers: [("Content-Type", "application/metalink4+xml")],
            body: Array(text.utf8))
        #expect(answer.status == status)
        #expect(answer.json["code"].string == code)
    }
}
