import Base
import Synchronization

/// Counters of a running exchange: written by its loop, read by any thread.
final class ExchangeMeter: Sendable {
    let phase = Atomic<UInt8>(ExchangeProgress.Phase.resolving.rawValue)
    let length = Atomic<Int64>(0)
    let received = Atomic<Int64>(0)
    let sent = Atomic<Int64>(0)
    /// -1 if unknown.
    let expected = Atomic<Int64>(-1)
    /// Whether a digest on a disk thread is no longer needed.
    let isAbandoned = Atomic<Bool>(false)

    func enter(_ phase: ExchangeProgress.Phase) { self.phase.store(phase.rawValue, ordering: .relaxed) }

    var progress: ExchangeProgress {
        let expected = expected.load(ordering: .relaxed)
        return ExchangeProgress(
            phase: ExchangeProgress.Phase(rawValue: phase.load(ordering: .relaxed)) ?? .resolving,
            length: length.load(ordering: .relaxed), bytesReceived: received.load(ordering: .relaxed),
            bytesSent: sent.load(ordering: .relaxed), expectedLength: expected < 0 ? nil : expected)
    }
}

/// The running exchanges, with the loop of each.
final class ExchangeDirectory: Sendable {
    private struct Table {
        var places: [ExchangeID: (loop: Int, meter: ExchangeMeter)] = [:]
        var load: [Int]
        var isClosed = false
    }

    /// The allowed excess of exchanges on the preferred loop over the least busy one. Connections are reused on the
    /// loop of the last exchange with the origin, but one origin should not overload a single thread.
    private static let tolerance = 32

    private let table: Locked<Table>

    init(loops: Int) { table = Locked(Table(load: Array(repeating: 0, count: loops))) }

    /// Adds an exchange and chooses its loop; `nil` after the engine was closed.
    func enter(_ id: ExchangeID, preferred: Int, _ meter: ExchangeMeter) -> Int? {
        table.withLock { table in
            guard !table.isClosed else { return nil }
            precondition(table.places[id] == nil, "exchange \(id.rawValue) runs already")
            var loop = preferred % table.load.count
            if let idlest = table.load.indices.min(by: { table.load[$0] < table.load[$1] }),
                table.load[loop] > table.load[idlest] + Self.tolerance
            {
                loop = idlest
            }
            table.load[loop] += 1
            table.places[id] = (loop, meter)
            return loop
        }
    }

    func leave(_ id: ExchangeID) {
        table.withLock { table in
            guard let place = table.places.removeValue(forKey: id) else { return }
            table.load[place.loop] -= 1
        }
    }

    func loop(of id: ExchangeID) -> Int? { table.withLock { $0.places[id]?.loop } }

    func progress(of id: ExchangeID) -> ExchangeProgress? { table.withLock { $0.places[id]?.meter }?.progress }

    var count: Int { table.withLock { $0.places.count } }

    func close() { table.withLock { $0.isClosed = true } }
}
