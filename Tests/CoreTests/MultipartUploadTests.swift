import Core
import Formats
import Testing

struct MultipartUploadTests {
    @Test func `The body consists of its parts`() {
        var upload = MultipartUpload()
        #expect(upload.length == 0)
        upload.parts = ["a", "b"]
        #expect(upload.length == 16 << 20)
        upload.digests = [MultipartUpload.DigestState(.sha256, state: "")]
        #expect(upload.knows([]) && upload.knows([.sha256]) && !upload.knows([.sha256, .md5]))
        upload.expected = 160_000 << 20
        #expect(upload.length == 32 << 20)
    }
}
