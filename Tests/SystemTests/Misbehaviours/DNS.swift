import Base
import Core
import Glibc
import TestSupport
import Testing

/// The addresses of origins' names: O-73 to O-75.
extension Misdeed {
    /// Downloads `/a` of a name on the port of an origin.
    private static func download(_ scene: Scene, _ name: String, _ port: UInt16) async throws -> Int {
        try await scene.download("/a", ["request": ["url": .string("http://\(name):\(port)/a")]])
    }

    static let dns: [Misdeed] = [
        Misdeed(
            id: "O-73", does: "has four addresses, of which the first two refuse and the third is silent",
            configuration: retrying([:], ["timeoutIntervalForRequest": 16]), needsNames: true
        ) { scene in
            let living = try OriginServer(address: 0x7F4D_0707)
            living.serve("/a", .generated(seed: 1, length: 200))
            let silent = try SilentPort(address: 0x7F00_0003, port: living.port)
            let owed = Owed.content(bytes(0..<200), attempts: 1) {
                try require($0.exchanges[0]["remoteAddress"] == "127.77.7.7", "\($0.exchanges)")
            }
            try await owed.holds(of: try await download(scene, "many.test", living.port), on: scene)
            withExtendedLifetime(silent) {}
        },
        Misdeed(id: "O-74", does: "has an allowed address and a private one", needsNames: true) { scene in
            scene.origin.serve("/a", .text("x"))
            let owed = Owed.failed(-1022) { try require($0.task["error"]["policy"] == "egress", "\($0.task["error"])") }
            try await owed.holds(of: try await download(scene, "mixed.test", scene.origin.port), on: scene)
            try require(scene.origin.requests.isEmpty && scene.origin.openConnections == 0, "reached all the same")
        },
        Misdeed(id: "O-75", does: "moves between attempts", needsNames: true) { scene in
            let living = try OriginServer(address: 0x7F4D_0707)
            living.serve("/a", .generated(seed: 1, length: 200))
            let number = try await download(scene, "moving.test", living.port)
            try await scene.waitFor("finds nobody", task: number) { $0["attempts"]["count"].int ?? 0 > 1 }
            try await Stage.shared().point("moving.test", to: "127.77.7.7")
            try await Owed.content(bytes(0..<200)).holds(of: number, on: scene)
        },
        Misdeed(id: "O-75", does: "moves to a private address between attempts", needsNames: true) { scene in
            let living = try OriginServer(address: 0x7F4D_0707)
            let number = try await download(scene, "leaving.test", living.port)
            try await scene.waitFor("finds nobody", task: number) { $0["attempts"]["count"].int ?? 0 > 1 }
            try await Stage.shared().point("leaving.test", to: "10.1.2.3")
            try await Owed.failed(-1022, attempts: nil) {
                try require($0.task["error"]["policy"] == "egress", "\($0.task["error"])")
            }.holds(of: number, on: scene)
        },
    ]
}

/// A port at which connections never complete: its queue is full.
private final class SilentPort: Sendable {
    private let listener: Int32
    private let waiting: [Int32]

    init(address: UInt32, port: UInt16) throws {
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        name.sin_addr.s_addr = address.bigEndian
        func with(_ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
            withUnsafePointer(to: &name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    call($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        func newSocket(_ flags: UInt32 = 0) -> Int32 {
            socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | flags), 0)
        }
        let listener = newSocket()
        self.listener = listener
        guard with({ bind(listener, $0, $1) }) == 0, listen(listener, 0) == 0 else {
            waiting = []
            throw Wrong("no silent port: \(errno)")
        }
        waiting = (0..<4).map { _ in
            let socket = newSocket(SOCK_NONBLOCK.rawValue)
            _ = with { connect(socket, $0, $1) }
            return socket
        }
    }

    deinit { for descriptor in waiting + [listener] { close(descriptor) } }
}
