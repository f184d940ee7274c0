import Core
struct RunningSetDigest {
    init(_ a: SetDigestAlgorithm, length: Int64) throws {}
    mutating func update(_ b: [UInt8]) {}
    func finish() -> String { "" }
}
struct PublishedFile: Sendable { init(_ f: KeptSetFile) {} }
struct SetDestinationX { 
    func place(_ f: [PublishedFile], of v: SetVersionRecord) async throws {}
    func point(to v: SetVersionRecord) async throws {}
    func sweep(keeping: [SetVersionRecord]) async throws {}
    func removeAll(keeping: SetVersionRecord?, known: [SetVersionRecord]) async throws {}
    func remove(_ v: SetVersionRecord, remaining: [SetVersionRecord]) async throws {}
    func seal(_ v: SetVersionRecord, _ b: (String) async throws -> [SetManifestFile]) async throws {}
}
import Store
extension Service { func destination(of s: SetRecord) -> SetDestinationX? { nil } }
