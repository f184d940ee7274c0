import Base
import Core
import TestSupport
import Testing

@testable import Service
@testable import Transfers

@Suite(.serialized)
struct UploadTests {
    @Test
    func `Bodies come from the order, the store, a file or a finished download`() async throws {
        let roots = TemporaryFolder()
        let bytes = Content.bytes(seed: 5, length: 300_000)
        roots.write(bytes, to: "in.bin")
        try await ServiceStage.run(configured: { $0.filesRoots = ["r": roots.path] }) { stage in
            let session = try await stage.session()
            stage.origin.serve("/up", .upload())
            stage.origin.serve("/small", .text("relayed"))
            stage.origin.serve("/large", .generated(seed: 5, length: 300_000))
            let downloads = try await stage.create(stage.order("/small"), stage.order("/large"), in: session)
            for task in downloads { _ = try await stage.completed(task) }
            let chunks = Locked([bytes])
            let stored = try await stage.service.receiveBody(BodyOrder(), app: stage.app, recording: nil) {
                chunks.withLock { $0.popLast() }
            }
            let bodies: [(TaskOrder.Body, [UInt8])] = [
                (.bytes([1, 2, 3], mediaType: "text/x"), [1, 2, 3]), (.stored(stored.publicId), bytes),
                (.file(root: "r", path: "in.bin"), bytes), (.content(ofTask: 1), Array("relayed".utf8)),
                (.content(ofTask: 2), bytes),
            ]
            for (body, sent) in bodies {
                let task = try await stage.create(stage.order("/up", kind: .upload, body: body), in: session)[0]
                let done = try await stage.completed(task)
                #expect(
                    done.outcome == .succeeded,
                    "\(String(describing: done.result?.error)) \(String(describing: done.result?.progress.transactions.last))"
                )
                #expect(done.result?.response?.statusCode == 201)
                let request = try #require(stage.origin.requests("/up").last)
                #expect(request.method == "PUT")
                #expect(request.bodySHA256 == Content.sha256(of: sent))
            }
            #expect(stage.origin.requests("/up")[0].fields["Content-Type"] == "text/x")
            #expect(stage.origin.requests("/up")[3].fields["Content-Type"] == "text/plain")
            await #expect(throws: ServiceError.contentUnavailable(index: 0)) {
                try await stage.create(
                    stage.order("/up", kind: .upload, body: .content(ofTask: 3)), in: session)
            }
            await #expect(throws: ServiceError.self) {
                try await stage.create(
                    stage.order("/up", kind: .upload, body: .file(root: "r", path: "../in.bin")), in: session)
            }
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test(arguments: [200_000, 2000])
    func `A source that changes after the order does not change the upload`(length: Int) async throws {
        let roots = TemporaryFolder()
        roots.write(Content.bytes(seed: 1, length: length), to: "in.bin")
        try await ServiceStage.run(configured: { $0.filesRoots = ["r": roots.path] }) { stage in
            let session = try await stage.session()
            stage.origin.serve("/up", .upload(), turns: [[.cutUpload(after: 1000, .reset)]])
            let task = try await stage.create(
                stage.order("/up", kind: .upload, suspended: true, body: .file(root: "r", path: "in.bin")), in: session)[
                    0]
            // Bytes in the database need no copy.
            #expect(filesBelow(stage.folder.file("data/bodies")).count == (length > 64 * 1024 ? 1 : 0))
            #expect(stage.service.heldBytes.withLock { $0 } == 0)
            roots.write(Content.bytes(seed: 2, length: 100), to: "in.bin")
            _ = try await stage.service.command(.resume, task: task.id)
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded, "\(String(describing: done.result))")
            #expect(stage.origin.requests.last?.bodySHA256 == Content.sha256(seed: 1, length: length))
        }
    }

    @Test
    func `A retry sends the body again, and the response is the task's content`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/up", .echo, turns: [[.status(503)]])
            let body = Content.bytes(seed: 3, length: 100_000)
            let task = try await stage.create(
                stage.order("/up", kind: .upload, body: .bytes(body, mediaType: nil)), in: session)[0]
            let done = try await stage.completed(task)
            #expect(try await stage.bytes(done) == body)
            #expect(try await !stage.events(session).map(\.kind).contains(.didFinishDownloading))
            let again = try await stage.service.retry(done, in: session, recording: nil).task
            #expect(again.specification.retryOf == task.number)
            #expect(try await stage.completed(again).outcome == .succeeded)
            #expect(stage.origin.requests.last?.bodySHA256 == Content.sha256(of: body))
        }
    }

    @Test
    func `A POST without permission to repeat is not repeated on a reused connection`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session {
                $0.retryPolicy = .custom(RetryPolicy.Settings(maximumAttempts: 1))
            }
            stage.origin.serve("/first", .upload())
            stage.origin.serve("/second", .upload(), turns: [[.noAnswer()]])
            func sent(_ path: String) async throws -> TaskRecord {
                let order = stage.order(path, kind: .upload, body: .bytes([1], mediaType: nil)) {
                    $0.request.method = "POST"
                }
                return try await stage.completed(try await stage.create(order, in: session)[0])
            }
            #expect(try await sent("/first").outcome == .succeeded)
            #expect(try await sent("/second").result?.error?.code == .networkConnectionLost)
            #expect(stage.origin.requests("/second").count == 1)
        }
    }

    @Test
    func `A destination receives the content, and replaces a file only if requested`() async throws {
        let roots = TemporaryFolder()
        roots.makeFolder("dir")
        roots.write([1], to: "dir/there")
        try await ServiceStage.run(configured: { $0.filesRoots = ["r": roots.path] }) { stage in
            let session = try await stage.session()
            stage.origin.serve("/small", .text("small"))
            stage.origin.serve("/large", .generated(seed: 1, length: 200_000))
            func moved(_ path: String, to target: String, replace: Bool = false) async throws -> TaskRecord {
                let order = stage.order(path) {
                    $0.destination = Destination(root: "r", path: target, replace: replace)
                }
                return try await stage.completed(try await stage.create(order, in: session)[0])
            }
            #expect(try await moved("/small", to: "dir/a").outcome == .succeeded)
            #expect(readFile(roots.file("dir/a")) == Array("small".utf8))
            let large = try await moved("/large", to: "dir/b")
            #expect(readFile(roots.file("dir/b")) == Content.bytes(seed: 1, length: 200_000))
            #expect(large.content?.length == 200_000)
            for (path, target) in [("/small", "dir/there"), ("/large", "dir/there"), ("/large", "../x")] {
                let failed = try await moved(path, to: target)
                #expect(failed.result?.error?.code == .cannotCreateFile)
            }
            #expect(readFile(roots.file("dir/there")) == [1])
            #expect(try await moved("/small", to: "dir/there", replace: true).outcome == .succeeded)
            #expect(readFile(roots.file("dir/there")) == Array("small".utf8))
            try await stage.waitForNoPartialFiles()
        }
    }
}
