import Formats
import Testing

@testable import Core

/// A content of 100 bytes, or of unknown length, of which some ranges have arrived.
@Suite struct ArrivingContentTests {
    private static let tag = "\"v\""

    private static func part(_ first: Int64, _ last: Int64, _ total: String, end: Int64?) -> ArrivingAnswer {
        .send(.init(first: first, end: end, contentRange: "bytes \(first)-\(last)/\(total)"))
    }

    @Test(
        arguments: [
            (nil, [0..<10], .send(.init(first: 0, end: 100, contentRange: nil))),
            (nil, [], .wait(for: 0)), (nil, [50..<100], .wait(for: 0)),
            ("bytes=5-20", [0..<10], part(5, 20, "100", end: 21)),
            ("bytes=10-20", [0..<10], .wait(for: 10)),
            ("bytes=60-", [0..<10], .wait(for: 60)), ("bytes=60-", [0..<10, 60..<61], part(60, 99, "100", end: 100)),
            ("bytes=-10", [0..<10], .wait(for: 90)), ("bytes=-10", [0..<10, 90..<100], part(90, 99, "100", end: 100)),
            ("bytes=-500", [0..<10], part(0, 99, "100", end: 100)),
            ("bytes=3-9007199254740991", [0..<10], part(3, 99, "100", end: 100)),
            ("bytes=99-", [0..<10], .wait(for: 99)), ("bytes=100-", [], .unsatisfiable(total: 100)),
            ("bytes=-0", [], .unsatisfiable(total: 100)), ("bytes=0-1,3-4", [], .wait(for: 0)),
            ("bytes=9-5", [0..<10], .send(.init(first: 0, end: 100, contentRange: nil))),
            // The whole content: its last byte is withheld until the task has succeeded.
            (nil, [0..<100], .send(.init(first: 0, end: 100, contentRange: nil))),
            ("bytes=99-", [0..<100], .wait(for: 99)), ("bytes=99-", [0..<50, 50..<100], .wait(for: 99)),
            ("bytes=98-", [0..<100], part(98, 99, "100", end: 100)),
        ] as [(String?, [Range<Int64>], ArrivingAnswer)])
    func `A range of a content of known length is answered as soon as its first byte has arrived`(
        _ range: String?, _ arrived: [Range<Int64>], _ answer: ArrivingAnswer
    ) {
        let content = ArrivingContent(version: 1, total: 100, arrived)
        #expect(ArrivingAnswer.decide(content, range: range) == answer)
    }

    @Test(
        arguments: [
            (nil, [0..<10], .send(.init(first: 0, end: nil, contentRange: nil))), (nil, [], .wait(for: 0)),
            ("bytes=5-20", [0..<10], part(5, 20, "*", end: 21)), ("bytes=10-20", [0..<10], .wait(for: 10)),
            ("bytes=5-", [0..<10], part(5, 9, "*", end: 10)), ("bytes=10-", [0..<10], .wait(for: 10)),
            ("bytes=5-9007199254740991", [0..<10], part(5, 9_007_199_254_740_991, "*", end: nil)),
            ("bytes=5-9007199254740990", [0..<10], part(5, 9_007_199_254_740_990, "*", end: 9_007_199_254_740_991)),
            ("bytes=10-9007199254740991", [0..<10], .wait(for: 10)),
            ("bytes=0-99999999999999999999", [0..<10], part(0, .max, "*", end: nil)),
            ("bytes=-5", [0..<10], .wait(for: nil)), ("bytes=-0", [0..<10], .wait(for: nil)),
            ("items=1-2", [0..<10], .send(.init(first: 0, end: nil, contentRange: nil))),
        ] as [(String?, [Range<Int64>], ArrivingAnswer)])
    func `A range of a content of unknown length has no total, and the largest position continues to the end`(
        _ range: String?, _ arrived: [Range<Int64>], _ answer: ArrivingAnswer
    ) {
        let content = ArrivingContent(version: 1, total: nil, arrived)
        #expect(ArrivingAnswer.decide(content, range: range) == answer)
    }

    @Test(arguments: [100, nil] as [Int64?])
    func `A range of another version is ignored`(total: Int64?) {
        let content = ArrivingContent(version: 1, total: total, [0..<10])
        func decide(_ ifRange: String?) -> ArrivingAnswer {
            ArrivingAnswer.decide(content, range: "bytes=5-6", ifRange: ifRange, entityTag: Self.tag)
        }
        #expect(decide(Self.tag) == decide(nil))
        #expect(decide("\"other\"") == .send(.init(first: 0, end: total, contentRange: nil)))
    }

    @Test func `Requests wait for the end if no byte can be read before`() {
        #expect(ArrivingAnswer.decide(nil, range: "bytes=500-") == .wait(for: nil))
    }

    @Test func `The readable bytes end at the first gap`() {
        let content = ArrivingContent(version: 1, total: 100, [0..<10, 10..<20, 30..<100])
        #expect([0, 5, 15, 20, 29, 30, 99].map { content.end(from: $0) } == [20, 20, 20, nil, nil, 100, 100])
        let whole = ArrivingContent(version: 1, total: 100, [0..<30, 30..<100])
        #expect([0, 98, 99].map { whole.end(from: $0) } == [99, 99, nil])
    }

    @Test func `The progress of a task has the bytes on disk, without unverified pieces`() {
        var progress = TaskProgress()
        progress.version = 7
        #expect(ArrivingContent(progress) == nil, "bytes that cannot be resumed are not stored")
        let point = ResumePoint { ($0.totalLength, $0.offset) = (100, 40) }
        progress.kept = .file(point, source: 0)
        #expect(ArrivingContent(progress) == ArrivingContent(version: 7, total: 100, [0..<40]))
        var record = SegmentRecord(total: 100)
        record.held = [HeldRange(0, 40), HeldRange(40, 50, source: 1), HeldRange(90, 100)]
        progress.kept = .segments(record, point, source: 0)
        #expect(ArrivingContent(progress) == ArrivingContent(version: 7, total: 100, [0..<40, 90..<100]))
        progress.kept = .parts(MultipartUpload(), point)
        #expect(ArrivingContent(progress) == nil, "parts of an upload cannot be read")
        var upload = MultipartUpload()
        (upload.key, upload.parts, upload.readable) = ("k", ["", ""], MultipartUpload.Readable())
        progress.kept = .parts(upload, point)
        let read = ArrivingContent(version: 7, total: 100, [0..<16 << 20], in: upload.objects)
        #expect(ArrivingContent(progress) == read && read.objects.map(\.key) == ["k.1", "k.2"])
    }
}
