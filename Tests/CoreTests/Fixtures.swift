@testable import Core

/// 2026-12-01T00:00:00.000Z, a Tuesday.
let now = Timestamp(milliseconds: 1_796_083_200_000)

/// SplitMix64: the same walk on every run.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

func head(_ status: Int, _ fields: [(String, String)] = []) -> ResponseHead {
    ResponseHead(status: status, fields: HTTPFields(fields.map { HTTPField(name: $0.0, value: $0.1) }))
}

extension Timestamp {
    static func after(_ seconds: Double) -> Timestamp { now + .milliseconds(Int64(seconds * 1000)) }
}
