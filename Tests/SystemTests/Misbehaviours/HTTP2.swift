import Base
import Core
import TestSupport
import Testing

/// Streams and connections with irregular ends: O-50 to O-54.
extension Misdeed {
    private static let content = bytes(0..<200_000)

    /// A misdeed of an HTTP/2 origin, over TLS.
    private static func framed(
        _ id: String, _ does: String, _ configuration: JSON = quick,
        _ answer: @escaping @Sendable (FrameServer.Request, FrameConnection) throws -> Bool,
        play: @escaping @Sendable (Scene, SecureFront, FrameServer) async throws -> Void
    ) -> Misdeed {
        Misdeed(id: id, does: does, configuration: configuration, needsNames: true) { scene in
            let server = try FrameServer(answer)
            let identity = try await Stage.shared().authority.identity()
            let front = try SecureFront(
                before: server.port, [.init(as: identity) { $0.applicationProtocols = ["h2", "http/1.1"] }])
            try await play(scene, front, server)
        }
    }

    /// Responds correctly, with ranges.
    @Sendable private static func serve(_ request: FrameServer.Request, _ connection: FrameConnection) throws {
        let tag = ("etag", "\"v1\"")
        guard request.range.hasPrefix("bytes="), let first = Int(request.range.dropFirst(6).dropLast()) else {
            try connection.head(request.stream, 200, [tag, ("content-length", "\(content.count)")])
            return try data(content[...], of: request, connection)
        }
        let range = "bytes \(first)-\(content.count - 1)/\(content.count)"
        try connection.head(
            request.stream, 206,
            [tag, ("content-range", range), ("content-length", "\(content.count - first)")])
        try data(content[first...], of: request, connection)
    }

    private static func data(
        _ bytes: ArraySlice<UInt8>, of request: FrameServer.Request, _ connection: FrameConnection, ends: Bool = true
    ) throws {
        var rest = bytes
        while rest.count > 10_000 {
            try connection.data(request.stream, Array(rest.prefix(10_000)))
            rest = rest.dropFirst(10_000)
        }
        try connection.data(request.stream, Array(rest), ends: ends)
    }

    private static func download(_ scene: Scene, _ front: SecureFront) async throws -> Int {
        try await scene.download("/a", ["request": ["url": .string(front.url("/a"))]])
    }

    static let http2: [Misdeed] = [
        framed(
            "O-50", "goes away after two requests of each connection",
            retrying(["maximumAttempts": 3], ["httpMaximumConnectionsPerHost": 3])
        ) {
            guard $0.turn <= 2 else { return true }
            try serve($0, $1)
            if $0.turn == 2 { try $1.goAway($0.stream, .none) }
            return true
        } play: { scene, front, server in
            var numbers: [Int] = []
            for _ in 0..<10 { numbers.append(try await download(scene, front)) }
            for number in numbers {
                // libcurl itself repeats an unprocessed request; after its last repetition one more attempt follows.
                let ended = try await Owed.content(content).holds(of: number, on: scene)
                try require(ended.task["attempts"]["count"].int ?? 9 <= 2, "\(ended.exchanges)")
                try require(ended.exchanges.last?["networkProtocolName"] == "h2", "\(ended.exchanges)")
            }
            try require(server.connections >= 5, "\(server.connections) connections")
        },
        framed(
            "O-50", "goes away, and another one closes without an answer",
            retrying([:], ["httpMaximumConnectionsPerHost": 3])
        ) {
            guard $0.turn <= 2 else { return true }
            try serve($0, $1)
            if $0.turn == 2 { try $1.goAway($0.stream, .none) }
            return true
        } play: { scene, front, _ in
            // A refused stream must not make libcurl repeat another request by itself.
            for _ in 0..<3 {
                var downloads: [Int] = []
                for _ in 0..<10 { downloads.append(try await download(scene, front)) }
                for number in downloads { try await Owed.content(content).holds(of: number, on: scene) }
                var uploads: [(origin: OriginServer, number: Int)] = []
                for _ in 0..<10 {
                    let origin = try OriginServer()
                    origin.serve("/up", .upload(status: 200, body: "thanks"), turns: [[.noAnswer()]])
                    let request: JSON = ["url": .string(origin.url("/up"))]
                    uploads.append(
                        (origin, try await scene.upload("/up", body: ["text": "x"], ["request": request])))
                }
                for (_, number) in uploads {
                    try await Owed.content(Array("thanks".utf8), attempts: 2).holds(of: number, on: scene)
                }
            }
        },
        framed("O-51", "refuses every stream", retrying(["maximumAttempts": 3])) {
            try $1.reset($0.stream, .refusedStream)
            return true
        } play: { scene, front, server in
            try await Owed.failed(-1005, attempts: 3).holds(of: try await download(scene, front), on: scene)
            try require(server.requests.count <= 20, "\(server.requests.count) requests")
        },
        framed("O-51", "refuses the first streams") {
            guard $0.connection > 1 else {
                try $1.reset($0.stream, .refusedStream)
                return true
            }
            try serve($0, $1)
            return true
        } play: { scene, front, _ in
            try await Owed.content(content).holds(of: try await download(scene, front), on: scene)
        },
        halved("O-52", "resets the stream within the body with INTERNAL_ERROR") {
            try $1.reset($0.stream, .internalError)
        },
        Misdeed(id: "O-53", does: "asks for calm", needsNames: true) { scene in
            // The server also supports HTTP/1.1, which is unused until it asks for calm.
            let server = try FrameServer { request, connection in
                try connection.reset(request.stream, .enhanceYourCalm)
                return true
            }
            scene.origin.serve("/a", Resource(.bytes(content), etag: "\"v1\""))
            let identity = try await Stage.shared().authority.identity()
            let front = try SecureFront(
                before: scene.origin.port,
                [
                    .init(as: identity) {
                        $0.applicationProtocols = ["h2", "http/1.1"]
                        $0.http2Port = server.port
                    }
                ])
            let first = try await Owed.content(content, attempts: 2, faults: ["networkConnectionLost", ""])
                .holds(of: try await download(scene, front), on: scene)
            try require(first.exchanges.last?["networkProtocolName"] == "http/1.1", "\(first.exchanges)")
            try await Owed.content(content, attempts: 1).holds(of: try await download(scene, front), on: scene)
            try require(server.requests.count == 1, "\(server.requests.count) requests by HTTP/2")
        },
        halved("O-54", "ends the stream before its length") {
            try $1.data($0.stream, [], ends: true)
        },
    ]

    /// Half of the content, and after its arrival, an irregular end. The second request gets a correct response.
    private static func halved(
        _ id: String, _ does: String,
        end: @escaping @Sendable (FrameServer.Request, FrameConnection) throws -> Void
    ) -> Misdeed {
        let half = Gate()
        return framed(id, does) {
            guard $0.range.isEmpty else {
                try serve($0, $1)
                return true
            }
            try $1.head($0.stream, 200, [("etag", "\"v1\""), ("content-length", "200000")])
            try data(content[..<100_000], of: $0, $1, ends: false)
            $1.wait(for: half)
            try end($0, $1)
            return true
        } play: { scene, front, server in
            let number = try await download(scene, front)
            try await scene.waitFor("has half", task: number) { $0["countOfBytesReceived"] == 100_000 }
            half.open()
            try await Owed.content(content, attempts: 2, faults: ["networkConnectionLost", ""])
                .holds(of: number, on: scene)
            try require(server.requests.map(\.range) == ["", "bytes=100000-"], "\(server.requests.map(\.range))")
        }
    }
}
