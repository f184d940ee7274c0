import Core
import TestSupport

@testable import Service

extension ServiceStage {
    /// A set whose destination is the folder `m` below the root.
    func setOnDisk() async throws -> SetRecord {
        var (destination, change) = (SetDestination(), SetChange())
        (destination.root, destination.path) = ("root", "m")
        change.destination = .some(destination)
        return try await service.putSet("m", of: app, change, ifRevision: nil).set
    }

    /// Creates a version with one file `f`, which the origin has under the version's name.
    @discardableResult
    func version(_ name: String, of set: SetRecord, digest: SetDigest? = nil) async throws -> SetVersionID {
        var order = SetVersionOrder()
        order.name = name
        let request = TransferRequest(url: origin.url("/\(name)"), method: "GET")
        let draft = try await service.beginVersion(order, of: set, in: session())
        try await service.add([SetFile("f", request, digest)], to: draft)
        return try await service.finish(draft, fingerprint: [], recording: nil).version.id
    }
}
