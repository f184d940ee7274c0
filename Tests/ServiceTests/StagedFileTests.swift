import Base
import Core
import Glibc
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// A staged file is removed with its value, unless a commit adopts it.
@Suite(.serialized)
struct StagedFileTests {
    private let bytes = Content.bytes(seed: 1, length: 300_000)

    private func bodies(_ stage: ServiceStage) -> [String] { filesBelow(stage.folder.file("data/bodies")) }

    private func limit(_ stage: ServiceStage, storedBytes: Int64) async throws {
        var changes = AppChanges()
        changes.limits = AppLimits()
        changes.limits?.maximumStoredBytes = storedBytes
        _ = try await stage.service.changeApp(stage.app, changes, ifRevision: nil)
    }

    /// The bytes of a body in one piece.
    private func once(_ bytes: [UInt8]) -> () async throws -> [UInt8]? {
        let rest = Locked([bytes])
        return { rest.withLock { $0.popLast() } }
    }

    @Test
    func `A body that the quota refuses leaves no file`() async throws {
        try await ServiceStage.run { stage in
            try await limit(stage, storedBytes: 100_000)
            for order in [BodyOrder(), BodyOrder(isComplete: false)] {
                await #expect(throws: DomainError.storedBytesExceeded(index: nil)) {
                    _ = try await stage.service.receiveBody(
                        order, app: stage.app, recording: nil, next: once(bytes))
                }
            }
            try await eventually("no file is left") { bodies(stage).isEmpty && stage.partialFiles().isEmpty }
        }
    }

    @Test
    func `Bytes of a draft beyond the quota are cut off`() async throws {
        try await ServiceStage.run { stage in
            try await limit(stage, storedBytes: 400_000)
            let draft = try await stage.service.receiveBody(
                BodyOrder(isComplete: false), app: stage.app, recording: nil, next: once(bytes))
            let file = try #require(bodies(stage).first)
            await #expect(throws: DomainError.storedBytesExceeded(index: nil)) {
                _ = try await stage.service.appendBody(
                    draft.publicId, app: stage.app, at: 300_000, BodyOrder(isComplete: false), next: once(bytes))
            }
            #expect(fileLength(stage.folder.file("data/bodies/\(file)")) == 300_000)
            #expect(try await stage.service.body(draft.publicId, app: stage.app).length == 300_000)
            // Bytes that arrived before the client broke off are kept.
            let rest = Locked([Array(bytes[..<50_000])])
            await #expect(throws: Unexpected.self) {
                _ = try await stage.service.appendBody(
                    draft.publicId, app: stage.app, at: 300_000, BodyOrder(isComplete: false)
                ) {
                    guard let piece = rest.withLock({ $0.popLast() }) else { throw Unexpected() }
                    return piece
                }
            }
            #expect(fileLength(stage.folder.file("data/bodies/\(file)")) == 350_000)
            #expect(try await stage.service.body(draft.publicId, app: stage.app).length == 350_000)
        }
    }

    @Test
    func `Copies are removed with tasks that are not created`() async throws {
        let roots = TemporaryFolder()
        roots.write(bytes, to: "in.bin")
        try await ServiceStage.run(configured: { $0.filesRoots = ["r": roots.path] }) { stage in
            let session = try await stage.session()
            stage.origin.serve("/large", .generated(seed: 1, length: 300_000))
            let download = try await stage.completed(try await stage.create(stage.order("/large"), in: session)[0])
            func order(_ body: TaskOrder.Body, client: String) -> TaskOrder {
                stage.order("/up", kind: .upload, suspended: true, body: body) { $0.clientTaskId = client }
            }
            let file = TaskOrder.Body.file(root: "r", path: "in.bin")
            let content = TaskOrder.Body.content(ofTask: download.number)
            try await stage.create(order(file, client: "a"), order(content, client: "b"), in: session)
            #expect(bodies(stage).count == 2)
            // Repetitions are the same tasks, and need no second copy.
            try await stage.create(order(file, client: "a"), order(content, client: "b"), in: session)
            // A conflict, and a task that would have been new.
            await #expect(throws: DomainError.clientTaskConflict(index: 1)) {
                try await stage.create(order(file, client: "new"), order(file, client: "b"), in: session)
            }
            // A source beyond the quota.
            try await limit(stage, storedBytes: 1_000_000)
            await #expect(throws: DomainError.storedBytesExceeded(index: 0)) {
                try await stage.create(order(file, client: "c"), in: session)
            }
            try await eventually("two copies are left, and are \(bodies(stage))") { bodies(stage).count == 2 }
        }
    }

    @Test(arguments: [200, 404])
    func `The bytes of a broken attempt are removed with the end`(_ status: Int) async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let large = Resource.generated(seed: 1, length: 1 << 20).with { $0.etag = nil }
            let end: Misbehaviour = status == 200 ? .become(.text("short")) : .status(status)
            stage.origin.serve("/a", large, turns: [[.cut(after: 500_000)], [end]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let done = try await stage.completed(task)
            #expect(done.result?.response?.statusCode == status)
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test
    func `Bytes without a resume point are not kept while the task waits`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session {
                $0.retryPolicy = .custom(RetryPolicy.Settings(initialDelay: 3600, maximumDelay: 3600))
            }
            let large = Resource.generated(seed: 1, length: 1 << 20).with { $0.etag = nil }
            stage.origin.serve("/a", large, turns: [[.cut(after: 500_000)]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            _ = try await stage.task(task, reaches: .retryWait)
            #expect(stage.partialFiles() == [])
        }
    }
}

/// Faults of this machine: limited in number, and named in the end.
@Suite(.serialized)
struct LocalFaultTests {
    /// Removes the folders of contents.
    private func breakContents(_ stage: ServiceStage) {
        for number in 0..<256 {
            let digits = String(number, radix: 16)
            rmdir(stage.folder.file("data/contents/\(digits.count < 2 ? "0" + digits : digits)"))
        }
    }

    @Test
    func `A disk that refuses content fails the task after a number of attempts`() async throws {
        try await ServiceStage.run { stage in
            breakContents(stage)
            stage.origin.serve("/a", .generated(seed: 1, length: 300_000))
            let session = try await stage.session {
                $0.retryPolicy = .custom(RetryPolicy.Settings(initialDelay: 0.01, maximumDelay: 0.01))
            }
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let done = try await stage.completed(task)
            #expect(done.outcome == .failed)
            let error = try #require(done.result?.error)
            #expect(error.code == .cannotWriteToFile)
            #expect(error.underlying?.domain == "urlsessiond" && error.underlying?.code == "disk")
            #expect(error.underlying?.message.contains("No such file") == true)
            #expect(done.result?.progress.attempts.attempts == RetryPolicy.localFaultLimit)
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test
    func `Faults of the disk count as attempts`() async throws {
        try await ServiceStage.run { stage in
            breakContents(stage)
            stage.origin.serve("/a", .generated(seed: 1, length: 300_000))
            let session = try await stage.session {
                $0.retryPolicy = .custom(
                    RetryPolicy.Settings(maximumAttempts: 2, initialDelay: 0.01, maximumDelay: 0.01))
            }
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let done = try await stage.completed(task)
            #expect(done.outcome == .failed && done.result?.progress.attempts.attempts == 2)
            #expect(done.result?.error?.underlying?.code == "disk")
        }
    }

    @Test
    func `A destination receives short content after a broken attempt`() async throws {
        let roots = TemporaryFolder()
        try await ServiceStage.run(configured: { $0.filesRoots = ["r": roots.path] }) { stage in
            let session = try await stage.session()
            let large = Resource.generated(seed: 1, length: 1 << 20).with { $0.etag = nil }
            stage.origin.serve("/a", large, turns: [[.cut(after: 500_000)], [.become(.text("short"))]])
            let order = stage.order("/a") { $0.destination = Destination(root: "r", path: "x", replace: false) }
            let done = try await stage.completed(try await stage.create(order, in: session)[0])
            #expect(done.outcome == .succeeded)
            #expect(readFile(roots.file("x")) == Array("short".utf8))
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test
    func `Unreadable credentials fail the task after a number of attempts`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/a", .text("secret"))
            let session = try await stage.session {
                $0.retryPolicy = .custom(RetryPolicy.Settings(initialDelay: 0.01, maximumDelay: 0.01))
            }
            var credential = Credential()
            (credential.user, credential.password) = ("user", "password")
            let space = ProtectionSpace(
                host: "127.0.0.1", port: Int(stage.origin.port), scheme: "http", realm: "r",
                authenticationMethod: .basic)
            _ = try await stage.service.keepCredential(credential, for: space, app: stage.app)
            try await stage.service.store.database.write { db in
                try db.execute("UPDATE credential SET secret = ?1", [UInt8(0)])
            }
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let done = try await stage.completed(task)
            #expect(done.outcome == .failed)
            #expect(done.result?.error?.underlying?.code == "credentials")
            #expect(done.result?.progress.attempts.attempts == 0)
            #expect(stage.origin.requests.isEmpty)
        }
    }
}
