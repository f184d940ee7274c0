import Base
import Core
import Glibc
import TestSupport
import Testing

/// Nodes that are killed, suspended or disconnected from the database or the bucket, and a database that fails over: no
/// task is lost or doubled, few bytes are fetched again, and other nodes soon resume a node's work.
///
/// With `SOAK=1` at full scale: four nodes, 10,000 tasks, each kind of trouble every minute, suspensions of 60 s.
@Suite(
    .serialized, .enabled(if: PostgreSQL.isAvailable && SeaweedFS.isAvailable && !TestStore.isOnServer)
)
struct ClusterStormTests {
    private static let isSoak = getenv("SOAK").map { String(cString: $0) } == "1"
    private static let configuration: JSON = [
        "httpMaximumConnectionsPerHost": 64, "retryPolicy": ["initialDelay": 0.2, "maximumDelay": 2],
    ]

    @Test func `Nodes in trouble and a failover lose no task and double none`() async throws {
        let began = ContinuousClock.now
        let storm = try await ClusterStorm(Self.isSoak ? .soak : .init(), configuration: Self.configuration)
        let (scene, count) = (storm.scene, storm.scale.tasks)
        let receiver = try Receiver { _ in .json(["completed": true]) }
        try await scene.launches(to: receiver)

        async let ordered: Void = storm.order()
        try await storm.run()
        try await ordered
        try await eventually("everything completes", within: .seconds(Self.isSoak ? 1800 : 300)) {
            let answer = try? await scene.api.get("/v1/sessions/s")
            return answer?.json["taskCounts"]["completed"].int == count
        }
        let last = try await Self.checkTasks(storm)
        try await Self.checkLaunches(scene, receiver, upTo: last)
        let figures = Self.checkBytes(storm)
        try await eventually("no upload is left", within: .seconds(60)) { try await storm.folder.uploads() == 0 }
        // Equal contents are one object.
        let large = Set((0..<count).filter { storm.contents.length(of: $0) > 65_536 }.map(storm.contents.digest))
        try await eventually("no other object is left", within: .seconds(60)) {
            try await storm.folder.keys().count == large.count
        }
        print(
            "cluster storm: \(storm.scale.nodes) nodes, \(count) tasks, 0 lost, 0 doubled, \(figures), taken over after "
                + "\(storm.tookOverWithin) ms, \(ContinuousClock.now - began)")
    }

    /// Returns the number of the last completion's event.
    private static func checkTasks(_ storm: ClusterStorm) async throws -> Int {
        let (scene, contents, count) = (storm.scene, storm.contents, storm.scale.tasks)
        let session = try await scene.session()
        #expect(session["taskCounts"]["succeeded"].int == count, "\(session["taskCounts"])")
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events).count == count)
        var cursor = ""
        var seen: Set<String> = []
        repeat {
            let page = try await scene.api.get("/v1/sessions/s/tasks?limit=1000\(cursor)").json
            for task in page["items"].array ?? [] {
                let name = task["clientTaskId"].string ?? ""
                seen.insert(name)
                #expect(task["content"]["digest"]["value"].string == contents.digest(of: Int(name) ?? 0), "\(name)")
            }
            cursor = page["nextCursor"].string.map { "&cursor=\($0)" } ?? ""
        } while !cursor.isEmpty
        #expect(seen.count == count)
        for number in 1...45 {
            let task = try await scene.task(number)
            let digest = contents.digest(of: Int(task["clientTaskId"].string ?? "") ?? 0)
            #expect(Content.sha256(of: try await scene.content(number).body) == digest, "\(task)")
        }
        return try #require(events.last { $0["type"] == "task.didComplete" }?["seq"].int)
    }

    private static func checkLaunches(_ scene: Scene, _ receiver: Receiver, upTo last: Int) async throws {
        try await eventually("all is handled", within: .seconds(120)) {
            let session = try await scene.session()
            return session["launch"].isNull && session["acknowledgedSeq"].int ?? 0 >= last
        }
        let deliveries = Dictionary(grouping: receiver.deliveries) { $0.id ?? "" }
        #expect(deliveries.values.allSatisfy { Set($0.map(\.body)).count == 1 }, "a launch changed")
        for launch in try await scene.launches() {
            #expect(launch["state"] == "completed" && deliveries[launch["launchId"].string ?? ""] != nil, "\(launch)")
        }
    }

    /// The bytes that the origin sent twice are the cost of interruptions.
    private static func checkBytes(_ storm: ClusterStorm) -> String {
        let requests = Dictionary(grouping: storm.scene.origin.requests, by: \.target)
        var (sum, again, most, interruptions, ofFirst) = (0, 0, 0, 0, 0)
        for task in 0..<storm.scale.tasks {
            let length = storm.contents.length(of: task)
            let own = requests[storm.contents.target(of: task)] ?? []
            let sent = own.reduce(0) { $0 + $1.bytesSent }
            #expect(
                sent <= length + (own.count - 1) * storm.contents.costOfInterruption(of: task),
                "task \(task): \(own.map { ($0.fields["Range"] ?? "", $0.bytesSent) })")
            sum += length
            again += sent - length
            interruptions += own.count - 1
            guard StormContents.isFirst(task), own.count > 1 else { continue }
            ofFirst += own.count - 1
            most = max(most, (sent - length) / (own.count - 1))
        }
        #expect(ofFirst > 0, "no large content was interrupted that had come far")
        return
            "\(interruptions) interruptions, \(again) of \(sum) bytes again, \(ofFirst) interruptions of large contents "
            + "that had come far, at most \(most) bytes each"
    }
}
