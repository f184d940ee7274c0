package import Core

/// Consecutive bytes of a content, in memory.
package struct ContentPart: Sendable {
    /// From 1.
    package let number: Int
    /// Where it begins in the content.
    package let offset: Int64
    package let bytes: [UInt8]
    /// The plan that it is part of.
    package let plan: PartPlan

    package var end: Int64 { offset + Int64(bytes.count) }
}

/// Gathers the bytes of one exchange into parts. Belongs to the loop's thread.
struct PartGatherer {
    private let plan: PartPlan
    private var number: Int
    private var bytes: [UInt8] = []

    init(_ plan: PartPlan, after count: Int) {
        self.plan = plan
        number = count + 1
    }

    private var offset: Int64 { plan.offset(ofPart: number) }

    /// Whether bytes may be taken now, with so many at hand that are not recorded.
    ///
    /// While a part is on its way only an eighth of the next one is taken: what a kill costs has to come again.
    func mayTake(unrecorded: Int64) -> Bool {
        let gathered = Int64(bytes.count)
        return unrecorded <= gathered || gathered < plan.length(ofPart: number) / 8
    }

    /// Takes bytes, and returns the parts that they fill.
    mutating func take(_ piece: UnsafeRawBufferPointer, ofContent expected: Int64?) -> [ContentPart] {
        var (rest, full) = (piece[...], [ContentPart]())
        while !rest.isEmpty {
            let length = plan.length(ofPart: number)
            if bytes.isEmpty, let expected { bytes.reserveCapacity(Int(clamping: min(length, expected - offset))) }
            let count = min(rest.count, Int(length) - bytes.count)
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
            rest = rest.dropFirst(count)
            if bytes.count == length { full.append(takePart()) }
        }
        return full
    }

    private mutating func takePart() -> ContentPart {
        let part = ContentPart(number: number, offset: offset, bytes: bytes, plan: plan)
        bytes = []
        number += 1
        return part
    }

    /// What is left at the end: nothing where the last part was full.
    mutating func takeLast() -> ContentPart? { bytes.isEmpty && number > 1 ? nil : takePart() }
}
