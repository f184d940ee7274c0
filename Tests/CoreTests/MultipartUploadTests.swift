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

    @Test func `The readable objects are the joined parts, and then one for each part`() throws {
        let part: Int64 = 8 << 20
        var upload = MultipartUpload()
        (upload.key, upload.parts) = ("f/1-a", ["a", "b"])
        #expect(upload.objects.isEmpty)
        upload.readable = MultipartUpload.Readable()
        #expect(upload.objects.map(\.key) == ["f/1-a.1", "f/1-a.2"])
        upload.readable?.joined = 2
        #expect(upload.objects == [StoredObject(key: "f/1-a", length: 2 * part)])
        upload.parts += ["", ""]
        let all = [("f/1-a", 2 * part), ("f/1-a.3", part), ("f/1-a.4", part)].map { StoredObject(key: $0, length: $1) }
        #expect(upload.objects == all)
        var whole = MultipartUpload.Whole()
        whole.length = 3 * part + 5
        upload.whole = whole
        #expect(upload.objects == all.dropLast() + [StoredObject(key: "f/1-a.4", length: 5)])
        #expect(try MultipartUpload(atRest: upload.bytesAtRest) == upload)
        upload.key = nil
        #expect(upload.objects.isEmpty, "an object that the app named")
    }

    @Test func `The key of a part names its content`() {
        #expect(MultipartUpload.key(ofPart: 12, of: "v1.2/contents/1-a") == "v1.2/contents/1-a.12")
        #expect(MultipartUpload.content(ofPart: "v1.2/contents/1-a.12") == "v1.2/contents/1-a")
        for key in ["contents/1-a", "v1.2/contents/1-a", "contents/1-a.", "contents/1-a.b"] {
            #expect(MultipartUpload.content(ofPart: key) == nil)
        }
    }
}
