import Base
import Core
import Formats
import Service

/// Reading contents while they arrive.
extension Client {
    /// Reads a piece of an unfinished content, like a request with `arriving=1`.
    func readArriving(_ task: KnownTask) async throws {
        guard task.isDownload, let found = try await record(of: task, "find \(task.name)"), found.state != .completed
        else { return }
        let (dice, patience) = (Dice.readers, Int64(Dice.readers.pick([100, 2000, 10_000])))
        let piece: (version: Int64, offset: Int64, bytes: [UInt8])?
        do {
            piece = try await attempt("read arriving \(task.name)") { service, _ in
                let reader = service.arrivalReader(of: found)
                let deadline = service.clock.monotonic() + patience
                var task = found
                while task.state != .completed, service.clock.monotonic() < deadline {
                    let content = reader.content(of: task)
                    if let content, let end = content.end(from: 0), let place = try await reader.open(content) {
                        let offset = Int64(dice.below(Int(end)))
                        let range = offset..<min(end, offset + 100_000)
                        return (content.version, offset, try await reader.read(place, range, of: content.version))
                    }
                    _ = await reader.wait(for: 0, until: deadline)
                    task = try await service.task(task.number, in: task.session)
                }
                return (0, 0, [])
            }
        } catch is ArrivalReader.Cut { return } catch is DomainError { return }
        guard let piece, !piece.bytes.isEmpty else { return }
        let sources = task.sources(of: piece.bytes, at: Int(piece.offset))
        let known = task.arrived[piece.version].map { $0.intersection(sources) } ?? sources
        guard !known.isEmpty else {
            throw Violation(
                "\(task.name) has other bytes at \(piece.offset) of the version \(piece.version) than its resources"
                    + (sources.isEmpty ? "." : ", or than before."))
        }
        task.arrived[piece.version] = known
        trace.met(plan.has(.objects) ? "arriving bytes compared, with a bucket" : "arriving bytes compared")
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
