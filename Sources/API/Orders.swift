import Core
import Mapping
import Service
import Wire

// What apps ask for with URLs in it. An address that the egress policy forbids is accepted here and refused when the
// task runs; a URL that could never be asked for is refused now.

extension TaskOrder {
    /// - Parameter pointer: Where the creation stands in the request's body, for the fault.
    init(checking wire: TaskCreation, at pointer: String = "", traceparent: String?) throws(JSONError) {
        if wire.resumeData == nil { try Service.check(url: wire.request?.url ?? "", at: pointer + "/request/url") }
        self.init(wire, traceparent: traceparent)
    }
}

extension TaskChanges {
    init(checking wire: TaskChange, of task: TaskRecord) throws(JSONError) {
        if let url = wire.request?.url { try Service.check(url: url, at: "/request/url") }
        self.init(wire, of: task)
    }
}

extension Core.Answer {
    init(checking wire: Wire.Answer, to question: QuestionRecord) throws(JSONError) {
        try self.init(wire, to: question)
        if let url = wire.request?.url { try Service.check(url: url, at: "/request/url") }
    }
}

extension Service {
    /// - Throws: A fault at `pointer` for a URL that libcurl's parser does not take.
    fileprivate static func check(url: String, at pointer: String) throws(JSONError) {
        if let detail = faultOfURL(url) { throw .invalid(detail, at: pointer) }
    }
}
