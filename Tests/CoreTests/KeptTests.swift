import Core
import Formats
import Testing

@Suite("Bytes kept for the next attempt")
struct KeptTests {
    private let point = ResumePoint {
        $0.url = "https://a.example/x"
        $0.totalLength = 100
        $0.offset = 10
    }

    private func moved(to offset: Int64, digest: String? = nil) -> ResumePoint {
        var point = point
        point.reach(offset, digest: digest)
        return point
    }

    @Test func `A durable offset moves the point and keeps the source`() {
        var kept = Kept.file(point, source: 2)
        kept.reach(40, digest: "ab")
        #expect(kept == .file(moved(to: 40, digest: "ab"), source: 2))
        #expect(kept.count == 40)
    }

    @Test func `Durable ranges count as a whole, and the point has the bytes before the first gap`() {
        let record = SegmentRecord {
            $0.total = 100
            $0.held = [HeldRange(0, 30), HeldRange(50, 60)]
        }
        var kept = Kept.file(point, source: 1)
        kept.keep(record)
        #expect(kept == .segments(record, moved(to: 30), source: 1))
        #expect(kept.count == 40)
        kept.forgetRanges()
        #expect(kept == .file(moved(to: 30), source: 1))
    }

    @Test func `Stored parts move the point, if the content has one`() {
        let upload = MultipartUpload()
        var (resumable, other) = (Kept.file(point, source: 1), Kept.none)
        resumable.keep(upload)
        other.keep(upload)
        #expect(resumable == .parts(upload, moved(to: upload.length)))
        #expect(other == .parts(upload, nil) && other.count == nil)
    }

    @Test func `No bytes are kept without a resume point`() {
        var kept = Kept.none
        kept.reach(5, digest: nil)
        kept.keep(SegmentRecord(total: 5))
        #expect(kept == .none && Kept(nil, SegmentRecord(total: 5), source: 1) == .none)
    }
}
