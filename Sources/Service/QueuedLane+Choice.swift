import Core
import Store

extension OriginPauses {
    /// Whether a lane's origin asked its app, or everybody, to wait.
    func hold(_ lane: QueuedLane, at now: Timestamp) -> Bool {
        until(Origin(lane: lane.origin), app: lane.app.rawValue, at: now) != nil
    }
}

extension Origin {
    /// The origin that a lane's text names: `scheme://host:port`.
    init(lane text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: true)
        let scheme = parts.first.map { String($0.dropLast()) } ?? ""
        let authority = parts.last.map(String.init) ?? ""
        let colon = authority.lastIndex(of: ":") ?? authority.endIndex
        // Brackets belong to the text, not to the address.
        let host = authority[..<colon].filter { $0 != "[" && $0 != "]" }
        self.init(scheme: scheme, host: String(host), port: Int(authority[colon...].dropFirst()))
    }
}

extension FairShare.Lane {
    init(_ lane: QueuedLane, running: Int) {
        self.init(
            app: lane.app.rawValue, session: lane.session.rawValue, host: lane.origin, priority: lane.priority,
            ready: Int(clamping: lane.queued), running: running, limit: lane.limitPerHost,
            isBackground: lane.isBackground)
    }
}
