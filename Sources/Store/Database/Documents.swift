import Base
import Core
import Formats

/// A document that cannot be decoded as the type that its row implies.
struct UnreadableDocument: Error {
    /// The expected type.
    let type: String
    let reason: JSONError
}

/// Core values at rest: JSON text, or sealed whole if the value holds a secret.
struct Documents: Sendable {
    let sealer: Sealer

    func encode(_ value: some MemberValue) -> [UInt8] { value.bytesAtRest }

    /// Seals the document, bound to the row that `context` names, if it holds a secret.
    func encode(_ value: some MemberValue, sealedAs context: String, if holdsSecrets: Bool) -> [UInt8] {
        holdsSecrets ? sealer.seal(value.bytesAtRest, boundTo: context) : value.bytesAtRest
    }

    func decode<Value: MemberValue>(
        _ type: Value.Type, _ bytes: [UInt8], sealedAs context: @autoclosure () -> String = ""
    ) throws -> Value {
        let plain = bytes.starts(with: Self.sealMark) ? try sealer.open(bytes, boundTo: context()) : bytes
        do throws(JSONError) {
            return try Value(atRest: plain)
        } catch {
            throw UnreadableDocument(type: "\(type)", reason: error)
        }
    }

    /// The first byte of a sealed document, its version. JSON text starts with a bracket, a quote or a digit.
    static let sealMark: [UInt8] = [1]
}

extension Documents {
    /// The fingerprint of the request for a task: equal for equal requests, whatever the order of their members.
    func fingerprint(_ specification: TaskSpecification, _ body: [UInt8], _ isSuspended: Bool) -> [UInt8] {
        var specification = specification
        specification.traceparent = nil
        specification.request.headers = HTTPFields(specification.request.headers.sortedByName)
        return Digest.of(specification.bytesAtRest + [0, isSuspended ? 1 : 0] + body)
    }
}
