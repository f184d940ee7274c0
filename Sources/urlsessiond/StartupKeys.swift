import Base
import Glibc

/// The admin key and the master key, created on the first start.
struct StartupKeys {
    var adminKey: String
    var masterKey: [UInt8]
    /// The path of an admin key that was created by this start.
    let newAdminKey: String?
    /// The path of a master key that was created by this start, for a database that may have another one.
    private let newMasterKey: String?

    init(_ configuration: Configuration) throws(Serve.Failure) {
        try Self.refuseNewMasterKey(configuration)
        // A database that this start creates has no other key. If the creation fails, the next start needs this one.
        let createsDatabase = configuration.server == nil && access(Serve.databasePath(configuration), F_OK) != 0
        newMasterKey =
            createsDatabase || access(configuration.masterKeyFile, F_OK) == 0 ? nil : configuration.masterKeyFile
        masterKey = try Self.masterKey(configuration.masterKeyFile)
        let isNew = !configuration.isDevelopment && access(configuration.adminKeyFile, F_OK) != 0
        newAdminKey = isNew ? configuration.adminKeyFile : nil
        adminKey = try Self.adminKey(configuration)
    }

    /// Removes a master key that was created by this start: the database has another one.
    func withdrawNewMasterKey() { if let newMasterKey { unlink(newMasterKey) } }

    static func adminKey(_ configuration: Configuration) throws(Serve.Failure) -> String {
        if configuration.isDevelopment { return "dev-admin" }
        let path = configuration.adminKeyFile
        let text = try text(path) { "usd_admin_" + RandomBytes.make(32).base62 }
        guard text.utf8.count >= 24 else {
            throw Serve.Failure(text: "\(path): an admin key has at least 24 characters")
        }
        return text
    }

    /// A new key for an existing database would silently lose its secrets.
    private static func refuseNewMasterKey(_ configuration: Configuration) throws(Serve.Failure) {
        let path = configuration.masterKeyFile
        guard !configuration.acceptsNewMasterKey, access(path, F_OK) != 0, errno == ENOENT,
            access(Serve.databasePath(configuration), F_OK) == 0
        else { return }
        throw Serve.Failure(text: "\(path) is missing, and \(Self.remedy(configuration))")
    }

    /// Advice if the database's secrets cannot be opened.
    static func remedy(_ configuration: Configuration) -> String {
        """
        \(configuration.server == nil ? Serve.databasePath(configuration) : "the database") has secrets that only its own master key opens: restore that key, or start \
        once with --new-master-key, which loses the secrets (docs/operating.md)
        """
    }

    private static func masterKey(_ path: String) throws(Serve.Failure) -> [UInt8] {
        let text = try text(path) { RandomBytes.make(32).base64 }
        guard let key = [UInt8](base64: text), key.count == 32 else {
            throw Serve.Failure(text: "\(path): a master key is 32 bytes in base64")
        }
        return key
    }

    /// The first line of a key file, which is created if it is missing.
    private static func text(_ path: String, make: () -> String) throws(Serve.Failure) -> String {
        if LocalFile.read(path) == nil, errno == ENOENT {
            do throws(SystemError) {
                try LocalFile.create(path, Array((make() + "\n").utf8))
            } catch {
                throw Serve.Failure(text: "\(path): cannot be made: \(error)")
            }
        }
        guard let bytes = LocalFile.read(path) else {
            throw Serve.Failure(text: "\(path): cannot be read: \(String(cString: strerror(errno)))")
        }
        let line = bytes.split(separator: 10, maxSplits: 1, omittingEmptySubsequences: false).first ?? []
        return String(decoding: line, as: UTF8.self)
    }
}
