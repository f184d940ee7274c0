/// The treatment of a body on a route.
package enum BodyRule: Sendable, Equatable {
    /// A body that is not empty is answered with 400.
    case none
    /// The handler runs after the head and reads the body as it arrives. A response before the end of the body closes
    /// the connection.
    case stream
}

/// A method, a path, and their handler.
package struct Route: Sendable {
    package typealias Executor = @Sendable (HTTPRequest) -> any TaskExecutor
    package typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse

    package let method: String
    /// The pattern with its `{name}` parts: a closed set, suitable as a metric label.
    package let pattern: String
    package let body: BodyRule
    /// The executor of the handler. Without one, the handler starts on libmicrohttpd's thread and must be quick.
    package let executor: Executor?
    package let handler: Handler
    let parts: [Part]

    enum Part: Sendable, Hashable {
        case literal(String)
        case parameter(String)
        case rest(String)

        init(_ text: Substring) {
            guard text.hasPrefix("{"), text.hasSuffix("}") else {
                self = .literal(String(text))
                return
            }
            let name = text.dropFirst().dropLast()
            self = name.hasSuffix("...") ? .rest(String(name.dropLast(3))) : .parameter(String(name))
        }
    }

    /// - Parameter pattern: A path such as `/v1/sessions/{identifier}/tasks/{number}`; a parameter matches one segment
    ///   that is not empty. A last part such as `{path...}` matches the rest of the path: one segment or more.
    package init(
        _ method: String, _ pattern: String, body: BodyRule = .none, executor: Executor? = nil,
        _ handler: @escaping Handler
    ) {
        precondition(pattern.hasPrefix("/"), "a pattern starts with a slash")
        self.method = method
        self.pattern = pattern
        self.body = body
        self.executor = executor
        self.handler = handler
        parts =
            pattern.dropFirst().isEmpty
            ? []
            : pattern.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(Part.init)
    }

    /// Whether the last part matches any number of segments.
    fileprivate var isOpen: Bool { if case .rest = parts.last { true } else { false } }
}

/// Finds the route for a path. Literal segments take precedence over parameters, from the left.
package struct Router: Sendable {
    /// Responds to `OPTIONS` on an existing path; receives the methods allowed there.
    package typealias Options = @Sendable (HTTPRequest, [String]) -> HTTPResponse

    enum Match: Sendable {
        case route(Route, parameters: [String: String])
        case methodNotAllowed(allow: [String])
        case notFound
    }

    /// All methods of one pattern.
    private struct Entry: Sendable {
        let parts: [Route.Part]
        var routes: [Route]
    }

    /// By number of segments; entries with more literals first.
    private var entries: [Int: [Entry]] = [:]
    /// Entries that match any number of further segments.
    private var openEntries: [Entry] = []
    let options: Options

    package init(
        _ routes: [Route],
        options: @escaping Options = { HTTPResponse(status: 204, headers: [("Allow", $1.joined(separator: ", "))]) }
    ) {
        self.options = options
        for route in routes {
            if route.isOpen {
                Self.add(route, to: &openEntries)
            } else {
                Self.add(route, to: &entries[route.parts.count, default: []])
            }
        }
    }

    private static func add(_ route: Route, to same: inout [Entry]) {
        if let index = same.firstIndex(where: { shape($0.parts) == shape(route.parts) }) {
            precondition(same[index].parts == route.parts, "two names for one parameter: \(route.pattern)")
            precondition(!same[index].routes.contains { $0.method == route.method }, "twice: \(route.pattern)")
            same[index].routes.append(route)
        } else {
            same.append(Entry(parts: route.parts, routes: [route]))
            same.sort { rank($0.parts).lexicographicallyPrecedes(rank($1.parts)) }
        }
    }

    func match(method: String, segments: [String]) -> Match {
        let entry =
            entries[segments.count]?.first { Self.matches($0.parts, segments) }
            ?? openEntries.first { Self.matches($0.parts, segments) }
        guard let entry else { return .notFound }
        let wanted = method == "HEAD" ? "GET" : method
        guard
            let route = entry.routes.first(where: { $0.method == method })
                ?? entry.routes.first(where: { $0.method == wanted })
        else { return .methodNotAllowed(allow: Self.allowed(entry.routes)) }
        var parameters: [String: String] = [:]
        for (index, part) in entry.parts.enumerated() {
            switch part {
            case .literal: break
            case .parameter(let name): parameters[name] = segments[index]
            case .rest(let name): parameters[name] = segments[index...].joined(separator: "/")
            }
        }
        return .route(route, parameters: parameters)
    }

    private static func allowed(_ routes: [Route]) -> [String] {
        var methods = Set(routes.map(\.method)).union(["OPTIONS"])
        if methods.contains("GET") { methods.insert("HEAD") }
        return methods.sorted()
    }

    private static func matches(_ parts: [Route.Part], _ segments: [String]) -> Bool {
        segments.count >= parts.count
            && zip(parts, segments).allSatisfy { part, segment in
                switch part {
                case .literal(let text): text.utf8.elementsEqual(segment.utf8)
                case .parameter, .rest: !segment.isEmpty
                }
            }
    }

    private static func rank(_ parts: [Route.Part]) -> [Int] {
        parts.map { if case .literal = $0 { 0 } else { 1 } }
    }

    private static func shape(_ parts: [Route.Part]) -> [String?] {
        parts.map { if case .literal(let text) = $0 { text } else { nil } }
    }
}
