import Formats
import Testing

@testable import Core

/// Blocks of 8 MiB of a content of 100 MiB, whose last block is shorter.
@Suite struct ArrivingCopyTests {
    private static let mebibyte: Int64 = 1 << 20
    private static let total = 100 * mebibyte

    private static func copy(_ blocks: [Range<Int64>] = []) -> ArrivingCopy {
        var copy = ArrivingCopy(of: TaskID(7), version: 3, total: total, key: "k", nil)
        for block in blocks { copy.add(block.lowerBound * mebibyte..<block.upperBound * mebibyte) }
        return copy
    }

    @Test(
        arguments: [
            // The block with the wanted byte comes first, then those after it.
            ([0], [], [0..<20], 0..<8), ([5], [], [0..<20], 0..<8), ([0], [0..<8], [0..<20], 8..<16),
            ([0], [0..<16], [0..<20], nil), ([0], [], [0..<7], nil), ([0], [], [1..<20], 8..<16),
            // Of several readers, each gets its first block before any gets its second one.
            ([0, 50], [0..<8], [0..<60], 48..<56), ([0, 50], [0..<8, 48..<56], [0..<60], 8..<16),
            ([0, 50], [], [0..<8], 0..<8), ([50, 0], [], [0..<60], 48..<56),
            // The last block ends with the content.
            ([99], [], [96..<100], 96..<100), ([99], [96..<100], [96..<100], nil), ([99], [], [97..<100], nil),
            ([100], [], [0..<100], nil), ([-1], [], [0..<100], nil), ([], [], [0..<100], nil),
        ] as [([Int64], [Range<Int64>], [Range<Int64>], Range<Int64>?)])
    func `The block that readers need first is copied next`(
        _ offsets: [Int64], _ copied: [Range<Int64>], _ readable: [Range<Int64>], _ next: Range<Int64>?
    ) {
        let found = Self.copy(copied).next(for: offsets.map { $0 * Self.mebibyte }) { offset in
            (readable.first { $0.contains(offset / Self.mebibyte) }?.upperBound).map { $0 * Self.mebibyte } ?? offset
        }
        #expect(found == next.map { $0.lowerBound * Self.mebibyte..<$0.upperBound * Self.mebibyte })
    }

    @Test func `At most 32 blocks are copied in advance of a reader`() {
        var copy = ArrivingCopy(of: TaskID(7), version: 3, total: 1 << 40, key: "k", nil)
        var count = 0
        while let next = copy.next(for: [0], { _ in 1 << 40 }) {
            copy.add(next)
            count += 1
        }
        #expect(count == 32 && copy.copied.count == copy.copied.end)
        #expect(copy.next(for: [1 << 39], { _ in 1 << 40 })?.contains(1 << 39) == true)
    }

    @Test func `Of a content of unknown length whole blocks are copied`() {
        var copy = ArrivingCopy(of: TaskID(7), version: 3, total: nil, key: "k", nil)
        let end = 20 * Self.mebibyte + 5
        while let next = copy.next(for: [0], { max($0, end) }) { copy.add(next) }
        #expect(copy.copied.ranges == [0..<16 * Self.mebibyte] && copy.content.total == nil)
        #expect(copy.content.end(from: 0) == 16 * Self.mebibyte && copy.content.objects.count == 2)
        #expect(copy.next(for: [1 << 53], { max($0, end) }) == nil)
    }

    @Test(arguments: [nil, .max, 6 << 40] as [Int64?])
    func `Readers and origins may send the largest numbers`(_ total: Int64?) {
        let copy = ArrivingCopy(of: TaskID(7), version: 3, total: total, key: "k", nil)
        for offset in [0, 5 << 40, (5 << 40) - 1, .max - 1, .max] as [Int64] {
            let next = copy.next(for: [offset]) { _ in .max }
            #expect((next != nil) == (offset < 5 << 40))
            #expect(copy.missing(for: [offset]).count == (offset < 5 << 40 ? 1 : 0))
        }
    }

    @Test func `The missing blocks of readers are fetched from their starts`() {
        let copy = Self.copy([0..<8])
        #expect(copy.missing(for: [0, 9, 99].map { $0 * Self.mebibyte }) == [8, 96].map { $0 * Self.mebibyte })
    }

    @Test func `The copied blocks can be read from their objects`() throws {
        let copy = Self.copy([8..<16, 16..<24, 96..<100])
        let content = copy.content
        func end(_ offset: Int64) -> Int64? { content.end(from: offset * Self.mebibyte).map { $0 / Self.mebibyte } }
        #expect([0, 7, 8, 20, 24, 95, 96].map(end) == [nil, nil, 24, 24, nil, nil, 100])
        #expect(content.version == 3 && content.total == Self.total)
        #expect(content.objects.count == 13 && content.objects.reduce(0) { $0 + $1.length } == Self.total)
        #expect(content.objects[1].key == copy.key(of: 8 * Self.mebibyte..<16 * Self.mebibyte))
        #expect(content.objects[12].key == copy.key(of: 96 * Self.mebibyte..<Self.total))
        #expect(Self.copy().content.objects.isEmpty)
    }

    @Test func `Readers receive the type and the name of the content, unless they are long`() {
        var response = TaskResponse()
        response.headers.append("Content-Type", "video/mp4")
        response.suggestedFilename = String(repeating: "n", count: 257)
        let copy = ArrivingCopy(of: TaskID(7), version: 3, total: 1, key: "k", response)
        #expect(copy.response.headers["Content-Type"] == "video/mp4" && copy.response.suggestedFilename == nil)
    }
}
