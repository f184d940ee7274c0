import Core
import Testing

@testable import Buckets

struct BucketTests {
    @Test(arguments: [
        (WriteCondition.none, nil, nil), (.absent, "*", nil), (.unchanged("\"v\""), nil, "\"v\""),
    ])
    func `A condition is a header field of the request that writes`(
        _ condition: WriteCondition, _ ifNoneMatch: String?, _ ifMatch: String?
    ) {
        var headers = HTTPFields()
        condition.write(to: &headers)
        #expect(headers["If-None-Match"] == ifNoneMatch && headers["If-Match"] == ifMatch)
        #expect(headers.fields.count == (condition == .none ? 0 : 1))
    }

    private func bucket(_ style: Bucket.Style, prefix: String = "", port: UInt16 = 8333) -> Bucket {
        Bucket(
            name: "photos", prefix: prefix, region: "r",
            endpoint: ParsedURL(text: "http://s3.example:\(port)/", isSecure: false, host: "s3.example", port: port),
            style: style)
    }

    @Test func `The bucket is part of the path or of the host`() {
        #expect(bucket(.path).target("a/b.jpg").url.text == "http://s3.example:8333/photos/a/b.jpg")
        #expect(bucket(.virtual).target("a/b.jpg").url.text == "http://photos.s3.example:8333/a/b.jpg")
        #expect(bucket(.path).target(query: [("uploads", "")]).url.text == "http://s3.example:8333/photos?uploads=")
        #expect(bucket(.virtual).target().url.text == "http://photos.s3.example:8333/")
    }

    @Test func `The default port of the scheme is left out`() {
        #expect(bucket(.path, port: 80).target("k").url.text == "http://s3.example/photos/k")
        #expect(bucket(.path, port: 80).target("k").hostField == "s3.example")
        #expect(bucket(.path, port: 443).target("k").hostField == "s3.example:443")
    }

    /// Characters with a meaning in URLs, spaces and other scripts are encoded; slashes, also repeated ones, are part
    /// of the key.
    @Test(arguments: [
        ("a b+c", "a%20b%2Bc"), ("x?y#z%41", "x%3Fy%23z%2541"), ("//a//", "//a//"), ("Ä/e\u{301}", "%C3%84/e%CC%81"),
        ("~-_.!*'()", "~-_.%21%2A%27%28%29"),
    ])
    func `A key keeps its bytes`(_ key: String, _ path: String) {
        #expect(bucket(.path, prefix: "p/").target(key).path == "/photos/p/" + path)
    }

    @Test func `A query is sorted and encoded`() {
        let target = bucket(.path).target("k", query: [("uploadId", "a/b+="), ("partNumber", "7")])
        #expect(target.query == "partNumber=7&uploadId=a%2Fb%2B%3D")
    }
}

struct PartPlanTests {
    @Test(arguments: [0, 1, 8 << 20, 80_000 << 20, (80_000 << 20) + 1, PartPlan.longestObject] as [Int64])
    func `Content of a known length fits into ten thousand parts`(_ length: Int64) {
        let plan = PartPlan(expected: length)
        #expect(plan.length(ofPart: 1) >= 8 << 20 && plan.length(ofPart: 1) % (1 << 20) == 0)
        #expect(plan.offset(ofPart: 10_001) >= length)
        // Parts are no longer than necessary.
        let shorter = plan.length(ofPart: 1) - (1 << 20)
        #expect(shorter < 8 << 20 || shorter * 10_000 < length)
    }

    @Test func `Content of an unknown length has parts of growing size`() {
        let plan = PartPlan(expected: nil)
        #expect(plan.length(ofPart: 1) == 8 << 20 && plan.length(ofPart: 1001) == 16 << 20)
        for number in [1, 2, 1000, 1001, 2000, 5000, 9999, 10_000] {
            #expect(plan.offset(ofPart: number) + plan.length(ofPart: number) == plan.offset(ofPart: number + 1))
        }
        #expect(plan.offset(ofPart: 10_001) >= PartPlan.longestObject)
        // S3's limit of one part.
        #expect(plan.length(ofPart: 10_000) <= 5 << 30)
    }
}

struct S3ErrorTests {
    private func error(_ status: Int, _ code: String, to method: String = "PUT") -> S3Error? {
        S3Error(
            status: status,
            body: Array("<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>so</Message></Error>".utf8),
            to: method)
    }

    @Test func `A success with an error in its body is a failure for POST`() {
        #expect(error(200, "InternalError", to: "POST")?.meaning == .busy)
        #expect(S3Error(status: 200, body: Array("<CompleteMultipartUploadResult/>".utf8), to: "POST") == nil)
        #expect(S3Error(status: 204, body: [], to: "DELETE") == nil)
    }

    @Test(arguments: [200, 206]) func `An object whose bytes look like an error is an object`(_ status: Int) {
        #expect(error(status, "NoSuchKey", to: "GET") == nil)
    }

    @Test(arguments: [
        (400, "InvalidPart", BucketFault.Remedy.anew), (400, "InvalidPartOrder", .anew),
        (400, "EntityTooSmall", .anew), (404, "NoSuchUpload", .anew), (400, "BadDigest", .later),
        (400, "IncompleteBody", .later), (400, "XAmzContentSHA256Mismatch", .later),
        (409, "ConditionalRequestConflict", .later), (412, "PreconditionFailed", .exists),
        (403, "AccessDenied", .change), (400, "InvalidArgument", .change),
    ])
    func `The store's error code selects the remedy`(_ status: Int, _ code: String, _ remedy: BucketFault.Remedy) throws
    {
        #expect(BucketFault.refused(try #require(error(status, code))).remedy == remedy)
    }

    @Test(arguments: [
        (403, "AccessDenied", true), (404, "NoSuchBucket", true), (507, "XMinioStorageFull", true),
        (404, "NoSuchKey", false), (503, "SlowDown", false), (400, "InvalidArgument", false),
    ])
    func `The store's error code decides whether the operator must act`(
        _ status: Int, _ code: String, _ expected: Bool
    ) throws {
        #expect(BucketFault.refused(try #require(error(status, code))).isOperators == expected)
    }

    @Test(arguments: [
        (404, "NoSuchBucket", S3Error.Meaning.noSuchBucket), (404, "NoSuchKey", .noSuchKey),
        (404, "NoSuchUpload", .noSuchUpload), (412, "PreconditionFailed", .preconditionFailed),
        (403, "SignatureDoesNotMatch", .forbidden), (503, "SlowDown", .busy), (403, "QuotaExceeded", .noSpace),
        (400, "EntityTooSmall", .lostParts), (400, "BadDigest", .busy),
        (501, "NotImplemented", .other),
    ])
    func `The store's error code selects the meaning`(_ status: Int, _ code: String, _ meaning: S3Error.Meaning) {
        #expect(error(status, code)?.meaning == meaning)
        #expect(error(status, code)?.message == "so")
    }

    @Test(arguments: [
        (403, S3Error.Meaning.forbidden), (404, .noSuchKey), (500, .busy), (507, .noSpace), (400, .other),
    ])
    func `Without an error code the status selects the meaning`(_ status: Int, _ meaning: S3Error.Meaning) {
        #expect(S3Error(status: status, body: [], to: "HEAD")?.meaning == meaning)
        #expect(S3Error(status: status, body: Array("<html>".utf8), to: "GET")?.code == "")
    }
}
