package import Base
package import Core
import Formats
import Synchronization
package import TransferEngine

/// The credentials that sign requests to a store.
package struct BucketCredentials: Hashable, Sendable {
    package let accessKeyID: String
    package let secretAccessKey: String
    /// For temporary credentials only.
    package let sessionToken: String?

    package init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
    }
}

extension BucketCredentials {
    /// Reads a profile of a credentials file: lines of `name = value` below `[profile]`.
    ///
    /// - SeeAlso: docs.aws.amazon.com/sdkref/latest/guide/file-format.html
    package init?(profile: String, ofFile bytes: [UInt8]) {
        var (isWanted, found) = (false, [String: String]())
        for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
            let line = line.trimmed
            if line.hasPrefix("#") || line.hasPrefix(";") { continue }
            if line.hasPrefix("["), line.hasSuffix("]") {
                isWanted = line.dropFirst().dropLast().trimmed == profile
            } else if isWanted, let equals = line.firstIndex(of: "=") {
                found[line[..<equals].trimmed] = line[line.index(after: equals)...].trimmed
            }
        }
        guard let id = found["aws_access_key_id"], let secret = found["aws_secret_access_key"] else { return nil }
        self.init(accessKeyID: id, secretAccessKey: secret, sessionToken: found["aws_session_token"])
    }

    /// Reads the environment variables that all AWS tools use.
    package init?(environment: [String: String]) {
        guard let id = environment["AWS_ACCESS_KEY_ID"], let secret = environment["AWS_SECRET_ACCESS_KEY"] else {
            return nil
        }
        self.init(accessKeyID: id, secretAccessKey: secret, sessionToken: environment["AWS_SESSION_TOKEN"])
    }
}

/// The source of a bucket's credentials.
package final class CredentialsSource: Sendable {
    private enum Kind {
        case given(Locked<BucketCredentials>)
        case instance(InstanceCredentials)
    }

    private let kind: Kind

    /// Fixed credentials, which may be replaced.
    package init(_ credentials: BucketCredentials) { kind = .given(Locked(credentials)) }

    /// The credentials of the machine's role.
    package init(_ instance: InstanceCredentials) { kind = .instance(instance) }

    /// Replaces fixed credentials.
    package func renew(_ credentials: BucketCredentials) {
        if case .given(let given) = kind { given.withLock { $0 = credentials } }
    }

    func current() async throws(BucketFault) -> BucketCredentials {
        switch kind {
        case .given(let given): given.withLock { $0 }
        case .instance(let instance): try await instance.current()
        }
    }
}

/// Credentials of the machine's role, from the metadata address of its cloud (IMDSv2). They are valid for some hours
/// and renewed five minutes before they expire.
///
/// - SeeAlso: docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
package actor InstanceCredentials {
    /// The default of all AWS tools, unless `AWS_EC2_METADATA_SERVICE_ENDPOINT` is set.
    package static let standardEndpoint = "http://169.254.169.254"

    private static let path = "/latest/meta-data/iam/security-credentials/"
    private static let margin = Duration.seconds(300)

    private let endpoint: ParsedURL
    private let exchanges: Exchanges
    private let clock: Clock
    private var known: (credentials: BucketCredentials, until: Timestamp)?

    /// - Parameter endpoint: Without a path.
    package init(endpoint: ParsedURL, exchanges: Exchanges, clock: Clock) {
        self.endpoint = endpoint
        self.exchanges = exchanges
        self.clock = clock
    }

    func current() async throws(BucketFault) -> BucketCredentials {
        let now = Timestamp(milliseconds: clock.wall())
        if let known, known.until - now > Self.margin { return known.credentials }
        do throws(BucketFault) {
            let fetched = try await fetch()
            known = fetched
            return fetched.credentials
        } catch {
            // The old credentials may be valid for a few more minutes.
            if let known, known.until > now { return known.credentials }
            throw error
        }
    }

    private func fetch() async throws(BucketFault) -> (credentials: BucketCredentials, until: Timestamp) {
        let token = try await ask("PUT", "/latest/api/token", ("X-aws-ec2-metadata-token-ttl-seconds", "300"))
        let proof = ("X-aws-ec2-metadata-token", String(decoding: token, as: UTF8.self))
        let roles = try await ask("GET", Self.path, proof)
        let role = String(decoding: roles.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        let document = try await ask("GET", Self.path + role, proof)
        guard let json = try? JSON.parse(document), let id = json["AccessKeyId"]?.stringValue,
            let secret = json["SecretAccessKey"]?.stringValue,
            let until = json["Expiration"]?.stringValue.flatMap({ Timestamp(rfc3339: $0) })
        else { throw .noCredentials("The metadata address provides no credentials.") }
        let credentials = BucketCredentials(
            accessKeyID: id, secretAccessKey: secret, sessionToken: json["Token"]?.stringValue)
        return (credentials, until)
    }

    private func ask(
        _ method: String, _ path: String, _ field: (name: String, value: String)
    ) async throws(BucketFault) -> [UInt8] {
        let url = ParsedURL(
            text: "\(endpoint.scheme)://\(endpoint.hostAndPort)\(path)", isSecure: endpoint.isSecure,
            host: endpoint.host, port: endpoint.port)
        // Permits only this address, which is denied to all other requests of the service.
        let egress = EgressPolicy(allowed: endpoint.address.map { [CIDR($0, $0.bitWidth)] } ?? [])
        var request = ExchangeRequest(
            id: exchanges.nextID(), pool: 0, method: method, url: url, sink: .memory(limit: 65_536), egress: egress
        ) { _ in HeadJudgement(.keep(at: 0)) }
        request.headers.append(field.name, field.value)
        request.totalTimeout = .seconds(5)
        let result = await exchanges.perform(request)
        guard case .memory(let bytes) = result.received, result.head?.status == 200, !bytes.isEmpty else {
            let status = result.head.map { " answered \($0.status)" } ?? " cannot be reached: \(result.curlMessage)"
            throw .noCredentials("The metadata address\(status).")
        }
        return bytes
    }
}
