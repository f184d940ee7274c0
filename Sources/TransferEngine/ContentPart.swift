package import Core

/// Consecutive bytes of a content, in memory.
package struct ContentPart: Sendable {
    /// From 1.
    package let number: Int
    /// The offset of the first byte in the content.
    package let offset: Int64
    package let bytes: [UInt8]
    /// The plan that the part belongs to.
    package let plan: PartPlan
    /// The memory granted for a part that is longer than usual.
    private let grant: PartMemory.Grant?

    init(number: Int, offset: Int64, bytes: [UInt8], plan: PartPlan, grant: PartMemory.Grant? = nil) {
        self.number = number
        self.offset = offset
        self.bytes = bytes
        self.plan = plan
        self.grant = grant
    }

    package var end: Int64 { offset + Int64(bytes.count) }
}

/// Collects the bytes of one exchange into parts. Used on the loop's thread.
struct PartGatherer {
    /// The bytes of a part accepted while the previous part is being stored, or before memory for all of it is granted.
    private static let ahead = PartPlan.usual / 8

    private let plan: PartPlan
    private let seat: PartMemory.Seat?
    private var number: Int
    private var bytes: [UInt8] = []
    private var grant: PartMemory.Grant?

    init(_ plan: PartPlan, after count: Int, _ seat: PartMemory.Seat? = nil) {
        self.plan = plan
        self.seat = seat
        number = count + 1
    }

    /// A gatherer with the same seat, for another content from its start.
    func restarted(_ plan: PartPlan) -> PartGatherer { PartGatherer(plan, after: 0, seat) }

    private var offset: Int64 { plan.offset(ofPart: number) }

    /// Whether bytes may be accepted now, with `unrecorded` bytes received and not recorded.
    ///
    /// While a part is being stored, only the beginning of the next one is accepted, because a kill loses unrecorded
    /// bytes.
    mutating func mayTake(unrecorded: Int64) -> Bool {
        let gathered = Int64(bytes.count)
        if gathered < Self.ahead { return true }
        return unrecorded <= gathered && hasMemory()
    }

    /// Requests memory for a part that is longer than usual. False if it is not granted yet.
    private mutating func hasMemory() -> Bool {
        let length = plan.length(ofPart: number)
        guard let seat, length > PartPlan.usual, grant == nil else { return true }
        grant = seat.take(length - PartPlan.usual)
        guard grant != nil else { return false }
        if let expected = plan.expected { bytes.reserveCapacity(Int(clamping: min(length, expected - offset))) }
        return true
    }

    /// Accepts bytes, and returns the parts that they complete.
    mutating func take(_ piece: UnsafeRawBufferPointer, ofContent expected: Int64?) -> [ContentPart] {
        var (rest, full) = (piece[...], [ContentPart]())
        while !rest.isEmpty {
            let length = plan.length(ofPart: number)
            if bytes.isEmpty, let expected {
                bytes.reserveCapacity(Int(clamping: min(length, PartPlan.usual, expected - offset)))
            }
            let count = min(rest.count, Int(length) - bytes.count)
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
            rest = rest.dropFirst(count)
            if bytes.count == length { full.append(takePart()) }
        }
        return full
    }

    private mutating func takePart() -> ContentPart {
        let part = ContentPart(number: number, offset: offset, bytes: bytes, plan: plan, grant: grant)
        (bytes, grant) = ([], nil)
        number += 1
        return part
    }

    /// The last part: `nil` if the previous part was complete and nothing is left.
    mutating func takeLast() -> ContentPart? { bytes.isEmpty && number > 1 ? nil : takePart() }
}
