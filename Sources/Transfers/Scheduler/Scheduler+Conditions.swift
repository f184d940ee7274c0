import Core
import Store
import TransferEngine

extension Scheduler {
    /// Stops transfers whose conditions ended, resumable and uncharged, and gives the others their new bandwidth.
    func applyConditions() async {
        let snapshot = conditions.snapshot
        for (id, transfer) in transfers where transfer.stop == nil {
            let verdict = snapshot.verdict(on: transfer.configuration, until: transfer.task.resourceDeadline)
            if verdict != .go { await stop(id, .interrupted) }
        }
        for transfer in transfers.values { setBandwidth(of: transfer) }
    }

    private func setBandwidth(of transfer: Transfer) {
        let share = bandwidthShare(of: transfer)
        for exchange in transfer.exchanges { engine.setBandwidthLimit(exchange, share) }
    }

    /// The share of its session's bandwidth, and of the open windows', that each connection of a transfer gets. Nodes that
    /// transfer get equal shares of both.
    func bandwidthShare(of transfer: Transfer) -> Int64? {
        let session = transfer.task.session
        let count = Int64(
            max(1, transfers.values.reduce(0) { $1.task.session == session ? $0 + $1.exchanges.count : $0 }))
        let all = Int64(max(1, transfers.values.reduce(0) { $0 + $1.exchanges.count }))
        let limit = (cache.sessions[session]?.configuration ?? transfer.configuration).bandwidthLimit
        let shares = [limit.map { $0 / count }, conditions.snapshot.bandwidthLimit.map { $0 / all }]
        return shares.compactMap { $0.map { max(1, $0 / Int64(neighbours.transferring)) } }.min()
    }

    /// Shares a session's bandwidth anew when one of its transfers begins or ends.
    func shareBandwidth(of session: SessionID) {
        for transfer in transfers.values where transfer.task.session == session {
            setBandwidth(of: transfer)
        }
    }

    /// Has the running transfers of a session keep to its new bandwidth.
    func applyBandwidth(to session: SessionID) async {
        cache.sessions[session] = nil
        // Read anew, so that the shares below see it; a session that is gone has no transfers.
        guard (try? await known(session)) != nil else { return }
        shareBandwidth(of: session)
    }

    /// Whether any limit asks for shares at all.
    func isLimited(_ session: SessionID) -> Bool {
        cache.sessions[session]?.configuration.bandwidthLimit != nil || conditions.snapshot.bandwidthLimit != nil
    }
}
