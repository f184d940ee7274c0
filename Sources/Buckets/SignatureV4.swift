import Base
package import Core
import Formats

/// Signature Version 4 of AWS, as S3 requires it: each path part is encoded once, the payload's digest is in a field.
///
/// libcurl 7.88 has a signer, but it does not sort queries, sends no `x-amz-content-sha256`, and signs no addresses.
///
/// - SeeAlso: docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, sigv4-query-string-auth.html
package struct SignatureV4: Sendable {
    /// The signed description of the body.
    package enum Payload: Sendable {
        case empty
        /// In lower-case hex.
        case sha256(String)
        /// Not signed, for a body whose digest is not known yet. TLS protects it.
        case unsigned

        var text: String {
            switch self {
            case .empty: Digest.of([]).hexadecimal
            case .sha256(let text): text
            case .unsigned: "UNSIGNED-PAYLOAD"
            }
        }
    }

    private static let algorithm = "AWS4-HMAC-SHA256"
    /// The maximum validity of a presigned address: seven days.
    package static let longestLife = 604_800

    let credentials: BucketCredentials
    let region: String
    let service: String

    package init(_ credentials: BucketCredentials, region: String, service: String = "s3") {
        self.credentials = credentials
        self.region = region
        self.service = service
    }

    /// The header fields that sign a request: `Authorization`, `x-amz-date`, `x-amz-content-sha256`, and
    /// `x-amz-security-token` if the credentials have one.
    ///
    /// - Parameter headers: Further fields to sign, which the caller sends: all that begin with `x-amz-`.
    package func fields(
        method: String, _ target: S3Target, _ payload: Payload, headers: HTTPFields = HTTPFields(), at now: Timestamp
    ) -> HTTPFields {
        let time = Self.time(now)
        var own = HTTPFields()
        own.append("x-amz-content-sha256", payload.text)
        own.append("x-amz-date", time)
        if let token = credentials.sessionToken { own.append("x-amz-security-token", token) }
        let signed = Self.canonical(
            [HTTPField(name: "host", value: target.hostField)] + own.fields
                + headers.fields.filter { $0.name.asciiLowercased.hasPrefix("x-amz-") })
        let request = Self.request(method, target, signed, payload.text)
        let names = signed.map(\.name).joined(separator: ";")
        own.append(
            "Authorization",
            "\(Self.algorithm) Credential=\(credentials.accessKeyID)/\(scope(time)), SignedHeaders=\(names), "
                + "Signature=\(signature(of: request, time))")
        return own
    }

    /// A presigned URL, which needs no credentials while it is valid.
    ///
    /// - Parameter seconds: The validity, 1 to ``longestLife``.
    package func presigned(method: String, _ target: S3Target, for seconds: Int, at now: Timestamp) -> S3Target {
        let time = Self.time(now)
        var pairs = [
            ("X-Amz-Algorithm", Self.algorithm), ("X-Amz-Credential", "\(credentials.accessKeyID)/\(scope(time))"),
            ("X-Amz-Date", time), ("X-Amz-Expires", "\(min(max(1, seconds), Self.longestLife))"),
            ("X-Amz-SignedHeaders", "host"),
        ]
        if let token = credentials.sessionToken { pairs.append(("X-Amz-Security-Token", token)) }
        let unsigned = target.adding(pairs.map { (name: $0.0, value: $0.1) })
        let host = [HTTPField(name: "host", value: target.hostField)]
        let request = Self.request(method, unsigned, host, SignatureV4.Payload.unsigned.text)
        return unsigned.adding([(name: "X-Amz-Signature", value: signature(of: request, time))])
    }

    // MARK: The steps of the signature

    private static func canonical(_ fields: [HTTPField]) -> [HTTPField] {
        fields.map { HTTPField(name: $0.name.asciiLowercased, value: folded($0.value)) }.sorted { $0.name < $1.name }
    }

    /// Trims spaces and collapses runs of them.
    private static func folded(_ value: String) -> String {
        value.split(separator: " ").joined(separator: " ")
    }

    private static func request(
        _ method: String, _ target: S3Target, _ fields: [HTTPField], _ payload: String
    ) -> String {
        let lines = fields.map { "\($0.name):\($0.value)\n" }.joined()
        let names = fields.map(\.name).joined(separator: ";")
        return "\(method)\n\(target.path)\n\(target.query)\n\(lines)\n\(names)\n\(payload)"
    }

    private func signature(of request: String, _ time: String) -> String {
        let digest = Digest.of(Array(request.utf8)).hexadecimal
        let text = "\(Self.algorithm)\n\(time)\n\(scope(time))\n\(digest)"
        return HMAC.sha256(key: key(String(time.prefix(8))), message: Array(text.utf8)).hexadecimal
    }

    /// The signing key of a day.
    private func key(_ day: String) -> [UInt8] {
        [day, region, service, "aws4_request"].reduce(Array("AWS4\(credentials.secretAccessKey)".utf8)) {
            HMAC.sha256(key: $0, message: Array($1.utf8))
        }
    }

    private func scope(_ time: String) -> String { "\(time.prefix(8))/\(region)/\(service)/aws4_request" }

    /// `20130524T000000Z`.
    private static func time(_ now: Timestamp) -> String {
        String(now.rfc3339.prefix(19)).filter { $0 != "-" && $0 != ":" } + "Z"
    }
}
