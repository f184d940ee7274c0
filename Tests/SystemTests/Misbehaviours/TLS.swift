import Base
import Core
import TestSupport
import Testing

/// Origins that are not trusted, or that fail in the handshake: O-05, O-69 to O-72.
extension Misdeed {
    /// A misdeed of an origin whose TLS is `manners`, one for each connection in turn.
    private static func secure(
        _ id: String, _ does: String, turns: [[Misbehaviour]] = [], configuration: JSON = quick, owed: Owed,
        _ manners: @escaping @Sendable (Authority) async throws -> [SecureFront.Manner]
    ) -> Misdeed {
        Misdeed(id: id, does: does, configuration: configuration, needsNames: true) { scene in
            scene.origin.serve("/a", .generated(seed: 1, length: 200_000), turns: turns)
            let front = try SecureFront(
                before: scene.origin.port, try await manners(try await Stage.shared().authority))
            let number = try await scene.download("/a", ["request": ["url": .string(front.url("/a"))]])
            try await owed.holds(of: number, on: scene)
        }
    }

    /// Refused with a named reason.
    private static func untrusted(_ code: Int, _ reason: String) -> Owed {
        .failed(code) {
            let message = $0.task["error"]["underlying"]["message"].string ?? ""
            try require(message.contains(reason), "\($0.task["error"])")
            try require($0.requests.isEmpty, "it was asked all the same")
        }
    }

    static let tls: [Misdeed] = [
        secure(
            "O-05", "closes early without a length, and without close_notify",
            turns: [[.raw(message("HTTP/1.1 200 OK", "ETag: \"v1\"", body: bytes(0..<100)))]],
            owed: .content(bytes(0..<100), attempts: 1) {
                try require($0.task["response"]["expectedContentLength"].isNull, "\($0.task["response"])")
            }
        ) {
            [.init(as: try await $0.identity()) { $0.saysGoodbye = false }]
        },
        secure(
            "O-05", "closes early within its length, and without close_notify", turns: [[.cut(after: 100_000)]],
            owed: .content(bytes(0..<200_000), attempts: 2, ranges: ["", "bytes=100000-"])
        ) {
            [.init(as: try await $0.identity()) { $0.saysGoodbye = false }]
        },
        secure(
            "O-69", "has a certificate that has expired", owed: untrusted(-1201, "expired")
        ) {
            [.init(as: try await $0.identity(validity: ("20200101000000Z", "20200102000000Z")))]
        },
        secure(
            "O-69", "has a certificate that is not valid yet", owed: untrusted(-1204, "not yet valid")
        ) {
            [.init(as: try await $0.identity(validity: ("20900101000000Z", "20910101000000Z")))]
        },
        secure(
            "O-69", "has a certificate for another name", owed: untrusted(-1202, "subject name")
        ) {
            [.init(as: try await $0.identity("DNS:elsewhere.test"))]
        },
        secure(
            "O-69", "has a certificate of somebody unknown",
            owed: untrusted(-1202, "unable to get local issuer certificate")
        ) { _ in
            [.init(as: try await Authority().identity())]
        },
        secure(
            "O-69", "has a certificate that it signed itself", owed: untrusted(-1202, "self-signed certificate")
        ) {
            [.init(as: try await $0.identity(ownKey: true))]
        },
        secure(
            "O-70", "stalls in the handshake", configuration: retrying([:], ["timeoutIntervalForRequest": 5]),
            owed: .content(bytes(0..<200_000), attempts: 2, faults: ["cannotConnectToHost", ""])
        ) {
            let identity = try await $0.identity()
            return [.init(as: identity) { $0.handshake = .stalls }, .init(as: identity)]
        },
        Misdeed(id: "O-70", does: "stalls in one of two handshakes", needsNames: true) { scene in
            let identity = try await Stage.shared().authority.identity()
            scene.origin.serve("/a", .generated(seed: 1, length: 200_000))
            let front = try SecureFront(
                before: scene.origin.port,
                [.init(as: identity) { $0.handshake = .stalls }, .init(as: identity)])
            let request: [String: JSON] = ["request": ["url": .string(front.url("/a"))]]
            let stalled = try await scene.download("/a", request)
            try await eventually("it is connected") { front.connections == 1 }
            // It must not wait for the other connection, which fails after 30 s.
            try await scene.completed(try await scene.download("/a", request), within: .seconds(20))
            try require(try await scene.task(stalled)["state"] == "running", "the first one does not wait")
        },
        secure(
            "O-70", "resets in the handshake",
            owed: .content(bytes(0..<200_000), attempts: 2, faults: ["secureConnectionFailed", ""])
        ) {
            let identity = try await $0.identity()
            return [.init(as: identity) { $0.handshake = .resets }, .init(as: identity)]
        },
        secure(
            "O-70", "speaks TLS 1.0 alone", owed: .failed(-1200)
        ) {
            [.init(as: try await $0.identity()) { $0.priority = "NORMAL:-VERS-ALL:+VERS-TLS1.0" }]
        },
        secure(
            "O-71", "asks for a client certificate", owed: .failed(-1206)
        ) {
            [.init(as: try await $0.identity()) { $0.demandsCertificate = true }]
        },
        secure(
            "O-71", "asks for a client certificate by TLS 1.2", owed: .failed(-1200)
        ) {
            [
                .init(as: try await $0.identity()) {
                    $0.demandsCertificate = true
                    $0.priority = "NORMAL:-VERS-ALL:+VERS-TLS1.2"
                }
            ]
        },
        secure(
            "O-72", "has another certificate at the next attempt", turns: [[.cut(after: 100_000)]],
            owed: .content(bytes(0..<200_000), attempts: 2, ranges: ["", "bytes=100000-"])
        ) {
            [.init(as: try await $0.identity()), .init(as: try await $0.identity())]
        },
        Misdeed(id: "O-72", does: "has another certificate at the next attempt, where one is pinned", needsNames: true)
        {
            scene in
            let authority = try await Stage.shared().authority
            let identities = [try await authority.identity(), try await authority.identity()]
            let pin = try await Authority.pin(of: identities[0])
            try await scene.makeSession(
                "pinned", retrying([:], ["pinnedPublicKeys": ["127.0.0.1": [.string(pin)]]]))
            scene.origin.serve("/a", .generated(seed: 1, length: 200_000), turns: [[.cut(after: 100_000)]])
            let front = try SecureFront(before: scene.origin.port, identities.map { .init(as: $0) })
            let number = try await scene.download("/a", ["request": ["url": .string(front.url("/a"))]], in: "pinned")
            let task = try await scene.completed(number, in: "pinned")
            try require(task["outcome"] == "failed" && task["error"]["code"] == -1202, "\(task)")
            try require(task["attempts"]["count"] == 2 && scene.origin.requests.count == 1, "\(task)")
        },
    ]
}
