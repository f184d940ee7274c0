import Buckets
import Core
import Testing

/// The examples of AWS' documentation.
///
/// - SeeAlso: docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, sigv4-query-string-auth.html
struct SignatureV4Tests {
    private let signature = SignatureV4(
        BucketCredentials(
            accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        region: "us-east-1")
    private let bucket = Bucket(
        name: "examplebucket", prefix: "", region: "us-east-1",
        endpoint: ParsedURL(text: "https://s3.amazonaws.com/", isSecure: true, host: "s3.amazonaws.com", port: 443),
        style: .virtual)
    private let now = Timestamp(rfc3339: "2013-05-24T00:00:00Z") ?? Timestamp()

    private func signed(_ query: [(name: String, value: String)]) -> String? {
        signature.fields(method: "GET", bucket.target(query: query), .empty, at: now)["Authorization"]
    }

    @Test func `A query without a value is signed with an empty one`() {
        #expect(
            signed([("lifecycle", "")])
                == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                + "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
                + "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
    }

    @Test func `A query is sorted before it is signed`() {
        let suffix = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        #expect(signed([("prefix", "J"), ("max-keys", "2")])?.hasSuffix(suffix) == true)
        #expect(signed([("max-keys", "2"), ("prefix", "J")])?.hasSuffix(suffix) == true)
    }

    @Test func `A presigned URL is valid for a limited time`() {
        let target = signature.presigned(method: "GET", bucket.target("test.txt"), for: 86_400, at: now)
        #expect(
            target.url.text
                == "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
                + "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
                + "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"
                + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
                + "&X-Amz-SignedHeaders=host")
    }
}
