import Base
import Glibc

/// The operator's key and the key that seals secrets, made on the first start.
struct StartupKeys {
    /// Why a key file cannot be used.
    struct Unusable: Error {
        var text: String
    }

    var adminKey: String
    var masterKey: [UInt8]

    init(_ configuration: Configuration) throws(Unusable) {
        masterKey = try Self.masterKey(configuration.masterKeyFile)
        adminKey =
            configuration.isDevelopment ? "dev-admin" : try Self.adminKey(configuration.adminKeyFile)
    }

    private static func adminKey(_ path: String) throws(Unusable) -> String {
        let text = try text(path) { "usd_admin_" + RandomBytes.make(32).base62 }
        guard text.utf8.count >= 24 else {
            throw Unusable(text: "\(path): an admin key has at least 24 characters")
        }
        return text
    }

    private static func masterKey(_ path: String) throws(Unusable) -> [UInt8] {
        let text = try text(path) { RandomBytes.make(32).base64 }
        guard let key = [UInt8](base64: text), key.count == 32 else {
            throw Unusable(text: "\(path): a master key is 32 bytes in base64")
        }
        return key
    }

    /// The first line of a key file, which is made where it is missing.
    private static func text(_ path: String, make: () -> String) throws(Unusable) -> String {
        if LocalFile.read(path) == nil, errno == ENOENT { _ = LocalFile.create(path, Array((make() + "\n").utf8)) }
        guard let bytes = LocalFile.read(path) else {
            throw Unusable(text: "\(path): cannot be read: \(String(cString: strerror(errno)))")
        }
        let line = bytes.split(separator: 10, maxSplits: 1, omittingEmptySubsequences: false).first ?? []
        return String(decoding: line, as: UTF8.self)
    }
}
