import Base
import Core
import Store
import TransferEngine

extension Scheduler {
    /// Interrupts transfers whose conditions ended, without a charged attempt, and sets the bandwidth of the others.
    func applyConditions() async {
        let snapshot = conditions.snapshot
        for (id, flight) in flights where flight.transfer.stop == nil {
            let transfer = flight.transfer
            let verdict = snapshot.verdict(on: transfer.configuration, until: transfer.task.resourceDeadline)
            guard verdict != .go else { continue }
            // The conditions of other sessions may still hold.
            if transfer.attempt.reuse?.leads == true { divideFlight(of: transfer) }
            await stop(id, .interrupted)
            if verdict.waitsForConnectivity { outlet.live(.isWaitingForConnectivity, transfer.task) }
        }
        for flight in flights.values { setBandwidth(of: flight.transfer) }
    }

    private func setBandwidth(of transfer: Transfer) {
        let share = bandwidthShare(of: transfer)
        for exchange in transfer.exchanges { engine.setBandwidthLimit(exchange, share) }
    }

    /// The bandwidth of each connection of a transfer: its share of the session's limit and of the current limit of the
    /// conditions. Nodes with transfers get equal shares of both.
    func bandwidthShare(of transfer: Transfer) -> Int64? {
        let session = transfer.task.session
        let count = Int64(
            max(
                1,
                flights.values.reduce(0) { $1.transfer.task.session == session ? $0 + $1.transfer.exchanges.count : $0 }
            ))
        let all = Int64(max(1, flights.values.reduce(0) { $0 + $1.transfer.exchanges.count }))
        let limit = (cache.sessions[session]?.configuration ?? transfer.configuration).bandwidthLimit
        let shares = [limit.map { $0 / count }, conditions.snapshot.bandwidthLimit.map { $0 / all }]
        return shares.compactMap { $0.map { max(1, $0 / Int64(neighbours.transferring)) } }.min()
    }

    /// Distributes a session's bandwidth again when one of its transfers begins or ends.
    func shareBandwidth(of session: SessionID) {
        for flight in flights.values where flight.transfer.task.session == session {
            setBandwidth(of: flight.transfer)
        }
    }

    /// Applies a session's new bandwidth to its transfers in flight.
    func applyBandwidth(to session: SessionID) async {
        cache.sessions[session] = nil
        do {
            // Read again for the shares below.
            _ = try await known(session)
            shareBandwidth(of: session)
        } catch DomainError.notFound {
            // A deleted session has no transfers.
        } catch {
            log.warning(
                "the bandwidth limit of a session could not be applied", ("row", session.rawValue),
                ("error", "\(error)"))
        }
    }

    /// Whether a bandwidth limit applies to the session.
    func isLimited(_ session: SessionID) -> Bool {
        cache.sessions[session]?.configuration.bandwidthLimit != nil || conditions.snapshot.bandwidthLimit != nil
    }
}
