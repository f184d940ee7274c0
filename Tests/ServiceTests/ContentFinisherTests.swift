import Base
import Core
import Files
import Formats
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import TransferEngine
@testable import Transfers

struct ContentFinisherTests {
    private let folder = TemporaryFolder()

    private func finisher(_ roots: [String: String] = [:]) async throws -> (ContentFinisher, TransferEngine) {
        let engine = try TransferEngine(threads: 1, diskThreads: 1, log: .none) { _ in }
        var settings = ServiceSettings(dataFolder: folder.path, version: "1", egress: EgressPolicy())
        settings.filesRoots = roots
        let data = DataFolder(path: folder.path, disk: engine.disk)
        try await data.prepare()
        let store = try Store(
            try await TestStore.location(in: folder), sealer: Sealer(masterKey: [UInt8](repeating: 3, count: 32)),
            policies: Store.Policies(
                contentRetention: .seconds(1), unacknowledgedRetention: .seconds(1),
                presence: { _ in Presence(isAttached: false, lastDetachedAt: Timestamp(milliseconds: 0)) }),
            log: .none, onFatalError: { preconditionFailure("\($0)") })
        return (ContentFinisher(store: store, folder: data, settings: settings, log: .none), engine)
    }

    private func task(_ change: (inout TaskSpecification) -> Void = { _ in }) -> ClaimedTask {
        var specification = TaskSpecification(
            kind: .download, request: TransferRequest(url: "https://a.example/", method: "GET"))
        change(&specification)
        return ClaimedTask(
            id: TaskID(5), session: SessionID(1), app: AppID(1), number: 1, lane: 1, specification: specification,
            progress: TaskProgress(), body: nil, resourceDeadline: nil)
    }

    private let bytes = Content.bytes(seed: 1, length: 100_000)

    private func content(_ verdict: Settlement.Verdict) throws -> NewContent {
        guard case .completed(_, _, let content?) = verdict else { throw Unexpected() }
        return content
    }

    @Test
    func `Short contents need no disk, unless they have a destination`() async throws {
        let (finisher, _) = try await finisher()
        let source = Judgement.ContentSource.bytes([1], digest: [2])
        let result = TaskResult(progress: TaskProgress())
        let verdict = finisher.verdictWithoutDisk(task().specification, .succeeded, result, source)
        let ready = try content(#require(verdict))
        guard case .bytes([1]) = ready.storage else { throw Unexpected() }
        #expect(ready.digest.value == "02")
        let moving = task { $0.destination = Destination(root: "r", path: "x", replace: false) }.specification
        #expect(finisher.verdictWithoutDisk(moving, .succeeded, result, source) == nil)
        #expect(finisher.verdictWithoutDisk(moving, .httpError, result, source) != nil)
        #expect(finisher.verdictWithoutDisk(moving, .failed, result, .none) != nil)
    }

    @Test
    func `A partial file becomes the content`() async throws {
        let (finisher, _) = try await finisher()
        folder.write(bytes, to: "partial/5")
        let verdict = try await finisher.finish(
            task(), .succeeded, TaskResult(progress: TaskProgress()),
            .partialFile(length: 100_000, digest: Digest.of(bytes)))
        let content = try content(verdict)
        guard case .file(let path) = content.storage else { throw Unexpected() }
        #expect(readFile(folder.file(path)) == bytes)
        #expect(content.length == 100_000)
        #expect(content.digest.value == Content.sha256(of: bytes))
        #expect(filesBelow(folder.file("partial")).isEmpty)
    }

    @Test
    func `The existing bytes are digested before they count`() async throws {
        let (finisher, _) = try await finisher()
        folder.write(bytes, to: "partial/5")
        for algorithm in DigestAlgorithm.allCases {
            let wrong = task { $0.expectedDigest = ContentDigest(algorithm: algorithm, value: "00") }
            await #expect(throws: DigestMismatch.self) {
                try await finisher.finish(
                    wrong, .succeeded, TaskResult(progress: TaskProgress()), .existingFile(length: 100_000))
            }
        }
        let verdict = try await finisher.finish(
            task(), .succeeded, TaskResult(progress: TaskProgress()), .existingFile(length: 100_000))
        #expect(try content(verdict).digest.value == Content.sha256(of: bytes))
    }

    @Test
    func `A missing root fails the task with -3000`() async throws {
        let (finisher, _) = try await finisher()
        let moving = task { $0.destination = Destination(root: "r", path: "x", replace: false) }
        let verdict = try await finisher.finish(
            moving, .succeeded, TaskResult(progress: TaskProgress()), .bytes([1], digest: [2]))
        guard case .completed(.failed, let result, nil) = verdict else { throw Unexpected() }
        #expect(result.error?.code == .cannotCreateFile)
    }
}
