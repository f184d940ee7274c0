import Base
import Core
import Service
import Transfers
import Wire

/// Identifies the caller of a request.
///
/// Only hashes are compared, in constant time. A key with an unknown identifier costs the same as one with a wrong
/// secret: a comparison and, the first time, a read of the store.
final class Authenticator: Sendable {
    /// Key records as stored; `.some(nil)` for unknown identifiers.
    private struct Cache {
        var records: [String: KeyRecord?] = [:]
        /// Rises when an entry is dropped, so that a read that began before does not restore it.
        var generation: UInt64 = 0
    }

    private static let cacheLimit = 10_000
    private static let nothing = [UInt8](repeating: 0, count: 32)

    private let service: Service
    private let adminKeyHash: Locked<[UInt8]>
    private let literalKeys: [APISettings.LiteralKey]
    private let cache = Locked(Cache())
    /// The owner of each accepted `Authorization` field, by the field's hash: keys themselves are not kept.
    private let owners = Locked<[Int: Int64]>([:])

    init(service: Service, settings: APISettings) {
        self.service = service
        adminKeyHash = Locked(settings.adminKeyHash)
        literalKeys = settings.literalKeys
    }

    /// The caller with these `Authorization` fields, of which a request has one (RFC 9110 section 5.3): a proxy could
    /// check another one than the service.
    ///
    /// - Throws: ``Problem`` `unauthorized`; the errors of the store.
    func caller(authorization fields: [String]) async throws -> Caller {
        guard let authorization = fields.first, fields.count == 1 else {
            throw Problem(.unauthorized, "Send one key, as: Authorization: Bearer KEY.")
        }
        let caller = try await identify(authorization)
        owners.withLock { owners in
            if owners.count >= Self.cacheLimit { owners = [:] }
            owners[authorization.hashValue] = caller.owner
        }
        return caller
    }

    /// The owner with whose requests an unread one waits: the owner of an earlier request with the same field.
    func owner(authorization: String?) -> Int64 {
        guard let authorization else { return Caller.anyone.owner }
        return owners.withLock { $0[authorization.hashValue] } ?? Caller.anyone.owner
    }

    private func identify(_ authorization: String) async throws -> Caller {
        guard let token = Self.bearerToken(authorization) else {
            throw Problem(.unauthorized, "Authorization must be Bearer and a key.")
        }
        let hash = Digest.of(Array(token.utf8))
        if ConstantTime.equal(hash, adminKeyHash.withLock { $0 }) { return .operator }
        let literal = literalKeys.first { ConstantTime.equal(hash, $0.hash) }
        let record = try await record(literal?.keyIdentifier ?? APIKey.identifier(in: token) ?? "")
        let isRight = ConstantTime.equal(hash, record?.hash ?? Self.nothing)
        guard isRight, let record else { throw Problem(.unauthorized, "There is no such key.") }
        if let end = record.expiresAt, end <= service.clock.now {
            throw Problem(.unauthorized, "The key has expired.")
        }
        return .app(record.app, keyIdentifier: record.keyIdentifier, scopes: Set(record.scopes))
    }

    /// Whether a caller that was admitted earlier would still be: its key is neither revoked nor expired. True if the
    /// store cannot answer.
    func stillAdmits(_ caller: Caller) async -> Bool {
        guard case .app(let app, let keyIdentifier, _) = caller else { return true }
        do {
            guard let record = try await record(keyIdentifier), record.app == app else { return false }
            return record.expiresAt.map { $0 > service.clock.now } ?? true
        } catch {
            return true
        }
    }

    /// Replaces the admin key. The key before is refused from now on.
    func adminKeyChanged(hash: [UInt8]) { adminKeyHash.withLock { $0 = hash } }

    /// Drops a key from the cache, because it was created or revoked.
    func keyChanged(_ keyIdentifier: String) {
        cache.withLock { cache in
            cache.generation += 1
            cache.records[keyIdentifier] = nil
        }
    }

    /// Drops all keys from the cache, because an app was deleted.
    func allKeysChanged() {
        cache.withLock { cache in
            cache.generation += 1
            cache.records = [:]
        }
    }

    private func record(_ keyIdentifier: String) async throws -> KeyRecord? {
        // Another node may have revoked the key: a revoked key is refused at once.
        if service.isShared { return try await service.key(keyIdentifier) }
        let (known, generation) = cache.withLock { ($0.records[keyIdentifier], $0.generation) }
        if let known { return known }
        let record = try await service.key(keyIdentifier)
        cache.withLock { cache in
            guard cache.generation == generation else { return }
            if cache.records.count >= Self.cacheLimit { cache.records = [:] }
            cache.records[keyIdentifier] = .some(record)
        }
        return record
    }

    private static func bearerToken(_ authorization: String) -> String? {
        let parts = authorization.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        let token = parts[1].drop { $0 == " " }
        guard !token.isEmpty, token.utf8.count <= 512 else { return nil }
        return String(token)
    }
}

/// Keys of apps: `usd_`, the identifier, `_`, and 256 random bits in base 62.
enum APIKey {
    private static let prefix = "usd_"
    private static let secretLength = 43

    static func make() -> (keyIdentifier: String, key: String, hash: [UInt8]) {
        let keyIdentifier = RandomBytes.make(12).base62
        let key = "\(prefix)\(keyIdentifier)_\(RandomBytes.make(32).base62)"
        return (keyIdentifier, key, Digest.of(Array(key.utf8)))
    }

    /// The identifier in a key, or nil if the text does not have the form of a key.
    static func identifier(in key: String) -> String? {
        let bytes = Array(key.utf8)
        let head = Array(prefix.utf8)
        guard bytes.starts(with: head), bytes.count > head.count + 1 + secretLength else { return nil }
        let end = bytes.count - secretLength - 1
        guard bytes[end] == UInt8(ascii: "_") else { return nil }
        return String(decoding: bytes[head.count..<end], as: UTF8.self)
    }
}
