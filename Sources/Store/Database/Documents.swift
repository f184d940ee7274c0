import Base
import Core
import FoundationEssentials
import Notation

/// A value that writes its own JSON document.
///
/// A task's end writes a document of a hundred members while the one writer waits, and a batch writes ten thousand
/// requests: `Encodable` is too slow for that. What is written here, `JSONDecoder` reads as `Decodable` has it: the names
/// are those of the properties, nil is left out.
protocol Document: Encodable, JSONWritable {}

/// Core values at rest: JSON text, or sealed whole where the value holds a secret.
struct Documents: Sendable {
    let sealer: Sealer

    func encode(_ value: some Encodable) throws -> [UInt8] { Array(try JSONEncoder().encode(value)) }

    func encode(_ value: some Document) throws -> [UInt8] {
        var writer = JSONWriter(.rest, capacity: 1024)
        value.write(to: &writer)
        return writer.bytes
    }

    /// Seals the document, bound to the row that `context` names, where it holds a secret.
    func encode(_ value: some Encodable, sealedAs context: String, if holdsSecrets: Bool) throws -> [UInt8] {
        seal(try encode(value), as: context, if: holdsSecrets)
    }

    func encode(_ value: some Document, sealedAs context: String, if holdsSecrets: Bool) throws -> [UInt8] {
        seal(try encode(value), as: context, if: holdsSecrets)
    }

    private func seal(_ bytes: [UInt8], as context: String, if holdsSecrets: Bool) -> [UInt8] {
        holdsSecrets ? sealer.seal(bytes, boundTo: context) : bytes
    }

    func decode<Value: Decodable>(
        _ type: Value.Type, _ bytes: [UInt8], sealedAs context: @autoclosure () -> String = ""
    )
        throws -> Value
    {
        let plain = Self.isSealed(bytes) ? try sealer.open(bytes, boundTo: context()) : bytes
        return try JSONDecoder().decode(type, from: Data(plain))
    }

    /// The first byte of a sealed document, its version. JSON text starts with a bracket, a quote or a digit.
    static let sealMark: [UInt8] = [1]

    private static func isSealed(_ bytes: [UInt8]) -> Bool { bytes.starts(with: sealMark) }
}

extension Documents {
    /// What identifies the request for a task: the same for the same request, whatever its order of members.
    func fingerprint(_ specification: TaskSpecification, _ body: [UInt8], _ isSuspended: Bool) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        var specification = specification
        specification.traceparent = nil
        return Digest.of(Array(try encoder.encode(specification)) + [0, isSuspended ? 1 : 0] + body)
    }
}

extension Documents {
    /// SHA-256 in hex.
    func digest(_ bytes: [UInt8]) -> String { Digest.of(bytes).hexadecimal }
}
