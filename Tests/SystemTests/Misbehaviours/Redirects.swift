import Base
import Core
import TestSupport
import Testing

/// Redirects: O-62 to O-68.
extension Misdeed {
    private static func leads(
        _ id: String, _ does: String, to lines: String..., needsNames: Bool = false, owed: Owed
    ) -> Misdeed {
        var misdeed = Misdeed(
            id, does,
            always: [.raw(message("HTTP/1.1 302 Found", lines.joined(separator: "\r\n"), "Content-Length: 0"))],
            owed: owed)
        misdeed.needsNames = needsNames
        return misdeed
    }

    private static func nowhere(_ id: String, _ does: String, to lines: String..., code: Int) -> Misdeed {
        leads(
            id, does, to: lines.joined(separator: "\r\n"),
            owed: .failed(code) { try require($0.requests.count == 1, "asked again") })
    }

    private static func forbidden(_ does: String, _ location: String, needsNames: Bool = false) -> Misdeed {
        leads(
            "O-64", does, to: "Location: \(location)", needsNames: needsNames,
            owed: .failed(-1022) {
                try require($0.task["error"]["policy"] == "egress", "\($0.task["error"])")
            })
    }

    static let redirects: [Misdeed] = [
        Misdeed(
            "O-62", "redirects to itself", always: [.redirect("/a")],
            owed: .failed(-1007) { try require($0.requests.count == 17, "\($0.requests.count) requests") }),
        Misdeed(id: "O-62", does: "redirects 16 times") { scene in
            scene.origin.serve("/a", .text("x"), always: [.redirect("/1")])
            for hop in 1..<16 { scene.origin.serve("/\(hop)", .text("x"), always: [.redirect("/\(hop + 1)")]) }
            scene.origin.serve("/16", .text("there"))
            let ended = try await Owed.content(Array("there".utf8), attempts: 1)
                .holds(of: try await scene.download("/a"), on: scene)
            try require(ended.task["redirects"].array?.count == 16, "\(ended.task["redirects"])")
            let urls = ["originalRequest", "currentRequest", "response"].map { ended.task[$0]["url"].string }
            let (first, last) = (scene.origin.url("/a"), scene.origin.url("/16"))
            try require(urls == [first, last, last], "\(urls)")
        },
        nowhere("O-63", "redirects to a file", to: "Location: file:///etc/passwd", code: -1002),
        nowhere("O-63", "redirects to FTP", to: "Location: ftp://127.0.0.1/x", code: -1002),
        forbidden("redirects to our own machine", "http://127.128.0.1/"),
        forbidden("redirects to our own machine by number", "http://2139095041/"),
        forbidden("redirects to the cloud's credentials", "http://169.254.169.254/latest/meta-data/"),
        forbidden("redirects to a private address", "http://10.0.0.1/"),
        forbidden("redirects to our own machine by IPv6", "http://[::1]/"),
        forbidden("redirects to a private name", "http://intranet.test/", needsNames: true),
        Misdeed(id: "O-65", does: "redirects to another port") { scene in
            let other = try OriginServer()
            other.serve("/there", .text("there"))
            try await tellsSecrets(scene, to: other.url("/there"))
            let told = other.requests[0].fields
            for name in secrets { try require(!told.contains(name), "\(name) was told to another") }
            try require(told["X-Open"] == "open", "\(told)")
            try require(told["Host"] == "127.0.0.1:\(other.port)", "\(told)")
        },
        Misdeed(id: "O-65", does: "redirects to another host", needsNames: true) { scene in
            scene.origin.serve("/there", .text("there"))
            try await tellsSecrets(scene, to: "http://localhost:\(scene.origin.port)/there")
            let told = scene.origin.requests("/there")[0].fields
            for name in secrets { try require(!told.contains(name), "\(name) was told to another") }
        },
        Misdeed(id: "O-65", does: "redirects within its own") { scene in
            scene.origin.serve("/there", .text("there"))
            try await tellsSecrets(scene, to: "/there")
            let told = scene.origin.requests("/there")[0].fields
            for name in secrets { try require(told[name] == "secret", "\(name) is missing") }
        },
        Misdeed(id: "O-66", does: "redirects from https to http", needsNames: true) { scene in
            scene.origin.serve("/a", .text("x"), always: [.redirect(scene.origin.url("/b"))])
            scene.origin.serve("/b", .text("plain"))
            let identity = try await Stage.shared().authority.identity()
            let front = try SecureFront(before: scene.origin.port, [.init(as: identity)])
            let number = try await scene.download("/a", ["request": ["url": .string(front.url("/a"))]])
            try await Owed.failed(-1022) { try require($0.task["error"]["policy"].isNull, "\($0.task["error"])") }
                .holds(of: number, on: scene)
            try require(scene.origin.requests("/b").isEmpty, "asked in plain text")
        },
        nowhere("O-67", "redirects without a Location", to: "X-One: a", code: -1010),
        nowhere("O-68", "redirects to no host", to: "Location: http://", code: -1010),
        nowhere("O-68", "redirects to a host with a space", to: "Location: http://a b/", code: -1010),
        nowhere("O-67", "redirects to an empty Location", to: "Location:", code: -1010),
        nowhere("O-68", "redirects with CR in the Location", to: "Location: /b\rX-Two: b", code: -1010),
        nowhere(
            "O-68", "redirects with a user in the Location", to: "Location: http://user:pw@127.0.0.1/", code: -1010),
        nowhere(
            "O-68", "redirects to 64 KB", to: "Location: /\(String(repeating: "b", count: 65_536))", code: -1010),
        nowhere("O-68", "redirects to two places", to: "Location: /b", "Location: /c", code: -1010),
    ]

    private static let secrets = ["Authorization", "Cookie", "X-Api-Key", "X-Auth-Token", "X-Auth-Anything", "X-Mine"]

    /// A download with secrets that is redirected.
    private static func tellsSecrets(_ scene: Scene, to location: String) async throws {
        scene.origin.serve("/a", .text("x"), always: [.redirect(location)])
        var headers = Dictionary(uniqueKeysWithValues: secrets.map { ($0, JSON.string("secret")) })
        headers["X-Open"] = "open"
        let request: JSON = [
            "url": .string(scene.origin.url("/a")), "headers": .object(headers), "sensitiveHeaders": ["X-Mine"],
        ]
        let number = try await scene.download("/a", ["request": request])
        let ended = try await Owed.content(Array("there".utf8), attempts: 1).holds(of: number, on: scene)
        for name in secrets { try require(ended.requests[0].fields[name] == "secret", "\(name) is missing") }
    }
}
