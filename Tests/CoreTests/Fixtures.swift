@testable import Core

/// 2026-12-01T00:00:00.000Z, a Tuesday.
let now = Timestamp(milliseconds: 1_796_083_200_000)

func head(_ status: Int, _ fields: [(String, String)] = []) -> ResponseHead {
    ResponseHead(status: status, fields: HTTPFields(fields.map { HTTPField(name: $0.0, value: $0.1) }))
}

extension Timestamp {
    static func after(_ seconds: Double) -> Timestamp { now + .milliseconds(Int64(seconds * 1000)) }
}
