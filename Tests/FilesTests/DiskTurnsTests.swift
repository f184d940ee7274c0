import Base
import Formats
import Glibc
import TestSupport
import Testing

@testable import Files

@Suite struct DiskTurnsTests {
    /// The order in which a single thread would do the work.
    private func order(_ turns: DiskTurns<String>) -> [String] {
        var turns = turns
        var order: [String] = []
        while let next = turns.next() {
            order.append(next.work)
            turns.end(next.length)
        }
        return order
    }

    @Test func `Owners alternate, and the work of each runs in order`() {
        var turns = DiskTurns<String>(threads: 1)
        for work in ["a1", "a2", "a3", "a4"] { turns.add(work, .short, for: 1) }
        for work in ["b1", "b2"] { turns.add(work, .short, for: 2) }
        turns.add("c1", .short, for: 3)
        #expect(order(turns) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"])
    }

    @Test func `Short work comes first, and long work continues beside it`() {
        var turns = DiskTurns<String>(threads: 4)
        for work in ["l1", "l2", "l3", "l4"] { turns.add(work, .long, for: 1) }
        for work in ["s1", "s2", "s3"] { turns.add(work, .short, for: 1) }
        // Four threads take work and do not return.
        let first = (0..<4).compactMap { _ in turns.next()?.work }
        #expect(first == ["l1", "s1", "s2", "s3"])
        // Without short work, long work has two threads, and no third.
        #expect(turns.next()?.work == "l2")
        #expect(turns.next() == nil)
        turns.end(.long)
        #expect(turns.next()?.work == "l3")
        #expect(!turns.isEmpty)
    }

    @Test func `A single thread does all work`() {
        var turns = DiskTurns<String>(threads: 1)
        turns.add("l", .long, for: 1)
        turns.add("s", .short, for: 2)
        #expect(order(turns) == ["s", "l"])
        #expect(turns.isEmpty == false)
    }

    // MARK: With threads and files

    private let folder = TemporaryFolder()

    /// A sparse file of zeros.
    private func sparse(_ name: String, megabytes: Int) -> String {
        let path = folder.write([], to: name)
        truncate(path, off_t(megabytes) << 20)
        return path
    }

    @Test func `Reading and copying whole files delays no sync`() async throws {
        let disk = try DiskQueue(threads: 4)
        let large = sparse("large", megabytes: 1024)
        let small = folder.write([1, 2, 3], to: "small")
        let done = Locked(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    _ = try? await disk.digest(disk.open(large), [.sha256, .sha512])
                    done.withLock { $0 += 1 }
                }
            }
            for _ in 0..<20 {
                let size = try await disk.size(small)
                #expect(size == 3)
            }
            try await disk.sync(small)
            // A gigabyte is read in many steps, and short work waits for one step at most.
            #expect(done.withLock { $0 } == 0)
            truncate(large, 0)
        }
    }

    @Test func `Files of one app do not delay those of another`() async throws {
        let disk = try DiskQueue(threads: 4)
        let (one, other) = (disk.of(1), disk.of(2))
        let large = sparse("large", megabytes: 1024)
        let medium = sparse("medium", megabytes: 12)
        let done = Locked(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<40 {
                group.addTask {
                    _ = try? await one.digest(one.open(large), [.sha256, .sha512])
                    done.withLock { $0 += 1 }
                }
            }
            let length = try await other.digest(other.open(medium)).length
            #expect(length == 12 << 20)
            #expect(done.withLock { $0 } == 0)
            truncate(large, 0)
        }
    }

    @Test func `A copy in steps is complete, and stops when there is no room`() async throws {
        let disk = try DiskQueue(threads: 2)
        let content = Content.bytes(seed: 1, length: 9 << 20)
        let source = folder.write(content, to: "source")
        try await disk.copy(disk.open(source), to: folder.file("copy"))
        #expect(readFile(folder.file("copy")) == content)
        let (length, digests) = try await disk.digest(disk.open(folder.file("copy")))
        #expect(length == 9 << 20 && digests[.sha256].map(Content.hex) == Content.sha256(of: content))

        let room = DiskRoom(floor: 0)
        room.note(free: 5 << 20, size: 100 << 20, writtenBefore: 0)
        do throws(SystemError) {
            try await disk.copy(disk.open(source), to: folder.file("second"), within: room)
            Issue.record("there was no room for it")
        } catch { #expect(error.isFull) }
    }
}
