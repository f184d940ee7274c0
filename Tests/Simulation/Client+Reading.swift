import Base
import Core
import Formats
import Service

/// Reading contents while they arrive.
extension Client {
    /// Reads the content of a task while it arrives, like successive requests with `arriving=1`.
    func followArriving(_ task: KnownTask) async throws {
        while world.isTroubled {
            await world.simulator.pause(Dice.readers.between(1, 4000))
            do {
                guard let found = try await record(of: task, "find \(task.name)") else { continue }
                if found.state == .completed { return }
                let patience = Int64(Dice.readers.pick([100, 2000, 10_000]))
                let pieces = try await attempt("read arriving \(task.name)") { service, _ in
                    try await Self.pieces(of: found, from: service, within: patience)
                }
                for piece in pieces ?? [] { try check(piece, of: task) }
            } catch is ArrivalReader.Cut {
                trace.met("reader cut off")
            } catch is DomainError { return }
        }
    }

    private struct Piece: Sendable {
        let version: Int64
        let offset: Int64
        let bytes: [UInt8]
        /// Whether the bytes are of a copy that another node has made of its file.
        let isCopied: Bool
    }

    /// Reads pieces of a content in its order, and waits for each.
    private static func pieces(
        of found: TaskRecord, from service: Service, within patience: Int64
    ) async throws -> [Piece] {
        let reader = service.arrivalReader(of: found)
        let deadline = service.clock.monotonic() + patience
        var (task, pieces, place, end) = (found, [Piece](), ArrivalReader.Place?.none, Int64(0))
        while task.state != .completed, service.clock.monotonic() < deadline, pieces.count < 5 {
            if let content = reader.content(of: task) {
                let version = pieces.first?.version ?? content.version
                if place == nil, content.end(from: 0) != nil { place = try await reader.open(content) }
                let next = try reader.end(from: end, of: version)
                if let place, next > end {
                    let range = max(end, next - 100_000)..<next
                    let bytes = try await reader.read(place, range, of: version)
                    if !bytes.isEmpty {
                        let isCopied = if case .objects = place { found.specification.mayComeInSegments } else { false }
                        pieces.append(
                            Piece(version: version, offset: range.lowerBound, bytes: bytes, isCopied: isCopied))
                        end = next
                    }
                }
            }
            _ = await reader.wait(for: end, until: deadline)
            task = try await service.task(task.number, in: task.session)
        }
        return pieces
    }

    private func check(_ piece: Piece, of task: KnownTask) throws {
        let sources = task.sources(of: piece.bytes, at: Int(piece.offset))
        let known = task.arrived[piece.version].map { $0.intersection(sources) } ?? sources
        guard !known.isEmpty else {
            throw Violation(
                "\(task.name) has other bytes at \(piece.offset) of the version \(piece.version) than its resources"
                    + (sources.isEmpty ? "." : ", or than before."))
        }
        task.arrived[piece.version] = known
        trace.met(plan.has(.objects) ? "arriving bytes compared, with a bucket" : "arriving bytes compared")
        if piece.isCopied { trace.met("copied bytes compared") }
    }

    /// Checks that the bytes of a succeeded task are those that readers have seen of their version.
    func checkArrival(_ task: KnownTask, _ found: TaskRecord) throws {
        guard found.outcome == .succeeded, !task.mayBeShort, let result = found.result,
            let sources = task.arrived[result.progress.version], let digest = result.contentDigest,
            digest.algorithm == .sha256
        else { return }
        let isSeen = sources.contains { source in
            task.resources[source.resource].digest(source.representation).hexadecimal == digest.value
        }
        guard isSeen else { throw Violation("\(task.name) succeeded with other bytes than its readers had seen.") }
        trace.met("arriving bytes were those of the end")
    }
}
