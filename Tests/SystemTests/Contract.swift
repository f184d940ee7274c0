import Core
import TestSupport
import Testing

/// Compares the service's responses with `openapi.yaml`: the status is listed, and the members are the schema's. Every
/// response to a ``Scene`` is checked.
struct Contract: Sendable {
    /// One method of one path.
    struct Operation: Sendable {
        let identifier: String
        let method: String
        let pattern: String
        let responses: JSON
        let isOpen: Bool
    }

    static let shared = Contract()

    let schema: Schema
    let operations: [Operation]
    private let patterns: [String: [Segment]]

    /// A segment of a pattern.
    private enum Segment {
        case name(Substring)
        case parameter

        func fits(_ segment: Substring) -> Bool {
            switch self {
            case .name(let name): name == segment
            case .parameter: !segment.isEmpty
            }
        }
    }

    /// Any route can respond with these, as the description's introduction states.
    private static let everywhere: Set = [405, 414, 417, 421, 431]

    /// The embedded description.
    static func embedded() -> [UInt8] {
        readFile("\(repository)/Sources/COpenAPI/openapi.json") ?? []
    }

    private init() {
        let document = (try? JSON(parsing: Self.embedded())) ?? .null
        schema = Schema(document: document, isExact: true)
        let paths = document["paths"].object ?? [:]
        patterns = paths.keys.reduce(into: [:]) { patterns, path in
            patterns[path] = Self.segments(path).map { $0.first == "{" ? .parameter : .name($0) }
        }
        operations = paths.flatMap { pattern, item in
            (item.object ?? [:]).compactMap { method, operation in
                guard let identifier = operation["operationId"].string else { return nil }
                return Operation(
                    identifier: identifier, method: method.uppercased(), pattern: pattern,
                    responses: operation["responses"], isOpen: operation["security"] == [])
            }
        }
    }

    /// The operation of a request; `nil` if none is described. `HEAD` is described with `GET`.
    func operation(_ method: String, _ target: String) -> Operation? {
        pattern(of: target).flatMap { operation(method, at: $0) }
    }

    private func operation(_ method: String, at pattern: String) -> Operation? {
        let own = operations.first { $0.method == method && $0.pattern == pattern }
        guard own == nil, method == "HEAD" else { return own }
        return operations.first { $0.method == "GET" && $0.pattern == pattern }
    }

    /// The differences between a response and the description.
    func faults(_ method: String, _ target: String, _ answer: APIClient.Answer) -> [String] {
        guard let pattern = pattern(of: target) else {
            return [400, 401, 404, 414, 421, 422].contains(answer.status) ? [] : ["an unknown path"]
        }
        if Self.everywhere.contains(answer.status) || method == "OPTIONS" { return [] }
        guard let operation = operation(method, at: pattern) else { return ["an unknown method"] }
        // Bytes that are not HTTP get a plain 400.
        if answer.status == 400, answer.fields["Content-Type"]?.hasPrefix("application/problem+json") != true {
            return []
        }
        guard operation.responses.has("\(answer.status)") else { return ["the status is not listed"] }
        let response = schema.resolved(operation.responses["\(answer.status)"])
        return faultsOfHeader(answer, response) + (method == "HEAD" ? [] : faultsOfBody(answer, response))
    }

    /// Reports described header fields that are missing in the description of this response.
    private func faultsOfHeader(_ answer: APIClient.Answer, _ response: JSON) -> [String] {
        let known = schema.document["components"]["headers"].object ?? [:]
        // Every response has Cache-Control, which is described only where it matters.
        return known.keys.filter { $0 != "Cache-Control" && answer.fields[$0] != nil && !response["headers"].has($0) }
            .sorted()
            .map { "the header field \($0) is not described" }
    }

    /// Records the faults as issues of the running test.
    @Sendable func check(_ method: String, _ target: String, _ answer: APIClient.Answer) {
        let faults = faults(method, target, answer)
        guard !faults.isEmpty else { return }
        Issue.record("openapi.yaml, \(method) \(target) \(answer.status): \(faults) \(answer.text.prefix(2000))")
    }

    private func faultsOfBody(_ answer: APIClient.Answer, _ response: JSON) -> [String] {
        guard let contents = response["content"].object else {
            return answer.body.isEmpty ? [] : ["no body is described"]
        }
        let type = answer.fields["Content-Type"].map { String($0.prefix { $0 != ";" }) } ?? ""
        guard let content = contents[type] ?? contents["*/*"] else { return ["the type \(type) is not described"] }
        guard type == "application/json" || type == "application/problem+json", contents["*/*"] == nil else {
            return []
        }
        guard let value = try? JSON(parsing: answer.body) else { return ["not JSON"] }
        return schema.faults(of: value, content["schema"])
    }

    /// The described path of a target: names before parameters. The path of a file in a set may have slashes.
    private func pattern(of target: String) -> String? {
        let segments = Self.segments(String(target.prefix { $0 != "?" }))
        var best: (path: String, parameters: Int)?
        for (path, pattern) in patterns
        where pattern.count == segments.count || (pattern.count < segments.count && path.hasSuffix("{path}")) {
            guard !zip(pattern, segments).contains(where: { !$0.fits($1) }) else { continue }
            let parameters = pattern.count { if case .parameter = $0 { true } else { false } }
            if best.map({ parameters < $0.parameters }) ?? true { best = (path, parameters) }
        }
        return best?.path
    }

    private static func segments(_ path: String) -> [Substring] {
        path.split(separator: "/", omittingEmptySubsequences: false)
    }
}
