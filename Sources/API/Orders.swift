import Core
import Service
import Wire
import WireMapping

// Checks of the URLs in orders. An address that the egress policy forbids is accepted here and refused when the task
// runs; an unusable URL is refused now. Webhooks are checked earlier, because their failure is less visible.

extension TaskOrder {
    /// - Parameter pointer: The position of the creation in the request's body, for the fault.
    init(checking wire: TaskCreation, at pointer: String = "", traceparent: String?) throws(JSONError) {
        self.init(wire, traceparent: traceparent)
        if resumeData == nil, specification.request.object == nil {
            url = try Service.url(specification.request.url, at: pointer + "/request/url")
        }
        for (index, url) in wire.terms.mirrors.enumerated() {
            _ = try Service.url(url, at: "\(pointer)/mirrors/\(index)")
        }
    }
}

extension TaskChanges {
    init(checking wire: TaskChange, of task: TaskRecord) throws(JSONError) {
        self.init(wire, of: task)
        if let url = wire.request?.url { origin = try Service.url(url, at: "/request/url").origin }
    }
}

extension SetFile {
    /// - Parameter pointer: The position of the file in the request's body, for the fault.
    init(checking wire: SetVersionFile, at pointer: String = "") throws(JSONError) {
        self.init(wire)
        if request.object == nil { try Service.url(request.url, at: pointer + "/request/url") }
    }
}

extension Core.SetSource {
    init(checking wire: Wire.SetSource) throws(JSONError) {
        self.init(wire)
        for (name, url) in [("endpoint", endpoint), ("url", url), ("base", base)] {
            if let url { try Service.url(url, at: "/source/" + name) }
        }
    }
}

extension Core.Answer {
    init(checking wire: Wire.Answer, to question: QuestionRecord) throws(JSONError) {
        try self.init(wire, to: question)
        if let url = wire.request?.url { try Service.url(url, at: "/request/url") }
    }
}

extension Array {
    /// The orders that `check` makes of the elements and their indices.
    ///
    /// - Throws: The faults of all elements together.
    func checked<Order>(_ check: (Int, Element) throws(JSONError) -> Order) throws(JSONError) -> [Order] {
        var orders: [Order] = []
        orders.reserveCapacity(count)
        var faults: [Fault] = []
        for (index, element) in enumerated() {
            do throws(JSONError) {
                orders.append(try check(index, element))
            } catch {
                faults += error.faults
                if faults.count >= Faults.maximumCount { break }
            }
        }
        guard faults.isEmpty else { throw .invalid(faults) }
        return orders
    }
}
