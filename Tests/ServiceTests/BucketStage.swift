import Base
import Buckets
import Core
import TestSupport
import TransferEngine

@testable import Service
@testable import Transfers

extension BucketClient {
    /// A client of a store on loopback.
    static func stage(_ store: ObjectStore, prefix: String = "p/") throws -> BucketClient {
        let endpoint = ParsedURL(
            text: "http://127.0.0.1:\(store.port)/", isSecure: false, host: "127.0.0.1", port: store.port)
        return BucketClient(
            Bucket(name: "bucket", prefix: prefix, region: "us-east-1", endpoint: endpoint, style: .path),
            credentials: CredentialsSource(BucketCredentials(accessKeyID: "id", secretAccessKey: "secret")),
            exchanges: try Exchanges(log: .none), egress: EgressPolicy(allowed: ServiceStage.loopback), clock: .system)
    }

    /// The client as the bucket of contents of a service.
    var asContents: ContentsBucket { ContentsBucket(self, folder: "ours", clock: .system, log: .none) }
}

extension TaskSpecification {
    /// Sets the destination of the content to the object `k` of the bucket `b`.
    mutating func writeObject(replace: Bool = true) {
        var destination = ObjectDestination()
        (destination.bucket, destination.key, destination.replace) = ("b", "k", replace)
        destinationObject = destination
    }
}
