package import Base
package import Core
import Formats
import Synchronization
package import TransferEngine

/// Who a store believes requests to be from.
package struct BucketCredentials: Hashable, Sendable {
    package let accessKeyID: String
    package let secretAccessKey: String
    /// With credentials that are only for a while.
    package let sessionToken: String?

    package init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
    }
}

extension BucketCredentials {
    /// What a profile of a credentials file says: lines of `name = value` below `[profile]`.
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

    /// What the variables of the environment say that all tools of AWS read.
    package init?(environment: [String: String]) {
        guard let id = environment["AWS_ACCESS_KEY_ID"], let secret = environment["AWS_SECRET_ACCESS_KEY"] else {
            return nil
        }
        self.init(accessKeyID: id, secretAccessKey: secret, sessionToken: environment["AWS_SESSION_TOKEN"])
    }
}

extension StringProtocol {
    fileprivate var trimmed: String {
        String(drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }
}

/// Where the credentials of a bucket come from.
package final class CredentialsSource: Sendable {
    private enum Place {
        case given(Locked<BucketCredentials>)
        case instance(InstanceCredentials)
    }

    private let place: Place

    /// Given credentials, which may be replaced.
    package init(_ credentials: BucketCredentials) { place = .given(Locked(credentials)) }

    /// Those of the machine's role.
    package init(_ instance: InstanceCredentials) { place = .instance(instance) }

    /// Replaces credentials that were handed in.
    package func renew(_ credentials: BucketCredentials) {
        if case .given(let given) = place { given.withLock { $0 = credentials } }
    }

    func current() async throws(BucketFault) -> BucketCredentials {
        switch place {
        case .given(let given): given.withLock { $0 }
        case .instance(let instance): try await instance.current()
        }
    }
}

/// Credentials of the role of the machine, from the metadata address of its cloud (IMDSv2). They are for some hours and
/// are asked for anew five minutes before they end.
///
/// - SeeAlso: docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
package actor InstanceCredentials {
    /// As all tools of AWS have it, unless `AWS_EC2_METADATA_SERVICE_ENDPOINT` says otherwise.
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
            // Old ones may do for a few minutes yet.
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
        else { throw .noCredentials("The metadata address hands out no credentials.") }
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
        // This address alone: it is closed to everything else that the service does.
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
