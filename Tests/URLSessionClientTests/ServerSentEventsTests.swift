import Testing

@testable import URLSessionClient

struct ServerSentEventsTests {
    /// The data of the events in a text that arrives in pieces of the given length.
    static func events(_ text: String, piece: Int = .max) -> [String] {
        var parser = ServerSentEvents()
        var rest = Array(text.utf8)[...]
        var events: [String] = []
        while !rest.isEmpty {
            events += parser.add(Array(rest.prefix(piece))).map { String(decoding: $0, as: UTF8.self) }
            rest = rest.dropFirst(piece)
        }
        return events
    }

    @Test(
        arguments: [
            ("id: 1\nevent: a\ndata: {}\n\n", ["{}"]), ("data:x\n\ndata: y\n\n", ["x", "y"]),
            ("data: a\ndata: b\n\n", ["a\nb"]), ("data\n\n", [""]), ("data:  two\n\n", [" two"]),
            (":\n\n", []), (": heart\n\ndata: x\n\n", ["x"]), ("id: 1\n\n", []), ("database: x\n\n", []),
            ("data: cut off\n", []), ("data: x\r\n\r\ndata: y\r\rdata: z\n\n", ["x", "y", "z"]),
            ("data: ä\r\n\n", ["ä"]), ("data: a:b: c\n\n", ["a:b: c"]),
        ] as [(String, [String])])
    func `Events are parsed completely, however they are split`(_ text: String, _ events: [String]) {
        for piece in [1, 2, 3, 5, .max] { #expect(Self.events(text, piece: piece) == events, "pieces of \(piece)") }
    }
}
