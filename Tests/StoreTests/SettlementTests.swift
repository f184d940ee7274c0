import Core
import Formats
import TestSupport
import Testing

@testable import Store

struct SettlementTests {
    @Test
    func `A download's last events are logged in order, in one commit with its content`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download { $0.clientTaskId = "c" }, in: session)
        _ = try await fixture.claim()
        var settlement = fixture.completion(task.id)
        settlement.resumption = Resumption(fileOffset: 5, expectedTotalBytes: 9, cause: "interrupted")
        settlement.bytesReceived = 7
        settlement.bytesSent = 3
        let aftermath = try await fixture.settle(settlement)
        #expect(aftermath.completedTasks.map(\.id) == [task.id])
        #expect(aftermath.sessions == [session.id: 4])
        let events = try await fixture.store.sessions.events(of: session.id, after: 0, limit: 10).events
        #expect(
            events.map(\.kind)
                == [.didResumeAtOffset, .didFinishDownloading, .didFinishCollectingMetrics, .didComplete])
        #expect(events.map(\.seq) == [1, 2, 3, 4])
        #expect(events.allSatisfy { $0.taskIdentifier == 1 && $0.clientTaskId == "c" })
        guard case .resumed(let resumption) = events[0].payload else { throw Unexpected() }
        #expect(resumption.fileOffset == 5)
        guard case .finishedDownloading(let content, _) = events[1].payload else { throw Unexpected() }
        #expect(content.length == 7)
        guard case .completed(.succeeded, let result) = events[3].payload else { throw Unexpected() }
        #expect(result.contentLength == 7)
        let completed = try await fixture.store.tasks.read(task.id)
        #expect(completed.state == .completed)
        #expect(completed.content == content)
        #expect(try await fixture.store.files.content(of: task.id).storage == .bytes(Array("content".utf8)))
        let after = try await fixture.refresh(session)
        #expect((after.countOfBytesReceived, after.countOfBytesSent) == (7, 3))
        #expect(after.counts.succeeded == 1)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `An upload and a download without content have no didFinishDownloading`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let upload = try await fixture.create(fixture.download { $0.kind = .upload }, in: session)
        let failed = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.completion(upload.id), fixture.completion(failed.id, .failed, bytes: nil))
        #expect(
            try await fixture.kinds(session)
                == [.didFinishCollectingMetrics, .didComplete, .didFinishCollectingMetrics, .didComplete])
        #expect(try await fixture.store.files.content(of: upload.id).record.length == 7)
        await #expect(throws: DomainError.notFound) { try await fixture.store.files.content(of: failed.id) }
    }

    @Test
    func `A cancellation precedes a settlement, whose content is removed`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        _ = try await fixture.store.tasks.command(.cancel(reason: nil), task: task.id, at: fixture.now)
        let digest = ContentDigest(algorithm: .sha256, value: "00")
        let content = NewContent(storage: .file("contents/01/1"), length: 1 << 20, digest: digest)
        let late = try await fixture.settle(
            Settlement(task: task.id, .completed(.succeeded, TaskResult(progress: TaskProgress()), content)))
        #expect(Set(late.filesToRemove) == ["contents/01/1", "partial/\(task.id.rawValue)"])
        #expect(try await fixture.store.tasks.read(task.id).outcome == .cancelled)
        #expect(try await fixture.kinds(session).count == 2)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A task that is suspended during its transfer stays suspended and keeps its progress`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        _ = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now)
        var progress = TaskProgress()
        progress.kept = .file(ResumePoint { $0.offset = 1000 }, source: 0)
        let verdicts: [Settlement.Verdict] = [
            .advanced(progress), .interrupted(progress),
            .retry(at: fixture.now, waitsForConnectivity: false, progress),
            .asked(Question(kind: .challenge), questionId: "q", deadline: fixture.now, progress),
        ]
        for (number, verdict) in verdicts.enumerated() {
            progress.kept = .file(ResumePoint { $0.offset = Int64(number) }, source: 0)
            try await fixture.settle(Settlement(task: task.id, verdict))
            let stored = try await fixture.store.tasks.read(task.id)
            #expect(stored.phase == .suspended)
            #expect(stored.progress?.kept.count == 1000)
        }
        #expect(try await fixture.kinds(session) == [])
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A task whose transfer ended before its suspension completes`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download { $0.kind = .upload }, in: session)
        _ = try await fixture.claim()
        _ = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now)
        try await fixture.settle(fixture.completion(task.id))
        #expect(try await fixture.store.tasks.read(task.id).outcome == .succeeded)
        try await expectSoundLedger(fixture)
    }

    /// A claimed download.
    private static func claimedTask(_ fixture: StoreFixture) async throws -> ClaimedTask {
        _ = try await fixture.create(fixture.download(), in: try await fixture.makeSession())
        return try #require(try await fixture.claim().first)
    }

    @Test(arguments: [false, true])
    func `A task that was suspended and resumed after its transfer ended completes`(isDelayed: Bool) async throws {
        let fixture = try await StoreFixture()
        let task = try await Self.claimedTask(fixture)
        _ = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now)
        if isDelayed {
            let change = TaskChanges.with { $0.earliestBeginDate = fixture.now + .seconds(5) }
            _ = try await fixture.store.tasks.change(task.id, change, ifRevision: nil, at: fixture.now)
        }
        let resumed = try await fixture.store.tasks.command(.resume, task: task.id, at: fixture.now).0
        #expect(resumed.phase == (isDelayed ? .delayed : .queued))
        var done = fixture.completion(task.id)
        done.request = task.specification.request
        // The commit that completes it claims the next tasks.
        let taken = try await fixture.store.tasks.advance(
            settling: [done], after: QueueCursor(), through: .everything, at: fixture.now
        ) { .tasks($0.lanes.map { ($0.id, 10) }) }
        #expect(taken.tasks?.isEmpty == true)
        #expect(try await fixture.store.tasks.read(task.id).outcome == .succeeded)
        try await expectSoundLedger(fixture)
    }

    @Test(arguments: [false, true])
    func `The response to a replaced request does not count`(isSuspended: Bool) async throws {
        let fixture = try await StoreFixture()
        let task = try await Self.claimedTask(fixture)
        var progress = TaskProgress()
        progress.kept = .file(ResumePoint { $0.offset = 1000 }, source: 0)
        try await fixture.settle(Settlement(task: task.id, .advanced(progress)))
        if isSuspended { _ = try await fixture.store.tasks.command(.suspend, task: task.id, at: fixture.now) }
        let change = TaskChanges.with {
            $0.request = TransferRequest(url: "https://origin.example/new", method: "GET")
        }
        _ = try await fixture.store.tasks.change(task.id, change, ifRevision: nil, at: fixture.now)
        var done = fixture.completion(task.id)
        done.request = task.specification.request
        try await fixture.settle(done)
        let stored = try await fixture.store.tasks.read(task.id)
        #expect(stored.phase == (isSuspended ? .suspended : .queued))
        // The bytes are part of the content.
        #expect(stored.progress?.kept == Kept.none)
        try await expectSoundLedger(fixture)
    }

    @Test
    func `A partial file is removed with its task`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create((0..<3).map { fixture.download("/\($0)") }, in: session).map(\.task.id)
        _ = try await fixture.claim()
        var failed = fixture.completion(tasks[0], .failed, bytes: nil)
        failed.leavesPartialFile = true
        #expect(try await fixture.settle(failed).filesToRemove == ["partial/\(tasks[0].rawValue)"])
        #expect(try await fixture.settle(fixture.completion(tasks[1])).filesToRemove == [])
        try await fixture.settle(
            Settlement(task: tasks[2], .retry(at: fixture.now, waitsForConnectivity: false, TaskProgress())))
        let (_, cancelled) = try await fixture.store.tasks.command(
            .cancel(reason: nil), task: tasks[2], at: fixture.now)
        #expect(cancelled.filesToRemove == ["partial/\(tasks[2].rawValue)"])
        #expect(try await fixture.store.files.discarded(limit: 10).count == 2)
        try await fixture.store.files.forgetDiscarded(["partial/\(tasks[0].rawValue)"])
        #expect(try await fixture.store.files.discarded(limit: 10) == ["partial/\(tasks[2].rawValue)"])
        #expect(try await !fixture.store.files.isNeeded(file: "partial/\(tasks[2].rawValue)"))
    }

    @Test func `A clock that was set back does not prolong the wait for disk space`() async throws {
        let fixture = try await StoreFixture()
        let task = try await fixture.create(fixture.download(), in: fixture.makeSession()).id
        _ = try await fixture.claim()
        try await fixture.settle(
            Settlement(
                task: task, .waitsForDisk(needed: 100, notBefore: fixture.now + .seconds(60), TaskProgress())))
        func isReady() async throws -> Bool? {
            try await fixture.store.tasks.waitingForDisk(at: fixture.now, limit: 9).first?.isReady
        }
        #expect(try await isReady() == false)
        fixture.advance(.seconds(60))
        #expect(try await isReady() == true)
        fixture.advance(.seconds(-86_400))
        #expect(try await isReady() == true)
    }

    @Test
    func `A settlement that cannot be stored rolls back its whole commit`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let tasks = try await fixture.create([fixture.download(), fixture.download()], in: session).map(\.task.id)
        _ = try await fixture.claim()
        await #expect(throws: (any Error).self) {
            // A duplicate question breaks the second settlement.
            let kind = Question.Kind.delayedRequest
            try await fixture.settle(fixture.ask(tasks[0], "q", kind), fixture.ask(tasks[1], "q", kind))
        }
        #expect(try await fixture.store.tasks.read(tasks[0]).phase == .active)
        #expect(try await fixture.kinds(session) == [])
        try await expectSoundLedger(fixture)
    }
}

/// A result that a test does not expect.
struct Unexpected: Error {}
