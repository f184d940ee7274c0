import Base
import Core
import Files
import Formats
import Store
import TransferEngine

/// Content that comes in parts is read once more, in order: behind its connections, or when one request has brought it.
extension Scheduler {
    /// Bytes that are read at once behind the connections.
    private static let readingStep: Int64 = 8 << 20

    /// Reads on in what has come without a gap.
    func readBehind(_ id: TaskID, _ group: inout ThrowingDiscardingTaskGroup<any Error>) {
        guard let segmented = transfers[id]?.segmented, !segmented.isReading, segmented.ending == nil else { return }
        let (reader, end, isComplete) = (segmented.reader, segmented.plan.record.contiguous, segmented.plan.isComplete)
        let unread = end - reader.position
        guard unread >= Self.readingStep || isComplete && unread > 0 else { return }
        transfers[id]?.segmented?.isReading = true
        let inbox = inbox
        group.addTask {
            let result: Result<Range<Int64>?, SystemError>
            do throws(SystemError) {
                let wrong = try await reader.read(to: end)
                if isComplete, wrong == nil { try await reader.truncate() }
                result = .success(wrong)
            } catch { result = .failure(error) }
            inbox.tell(.read(id, reader, result))
        }
    }

    /// Reads content once that came in one request.
    func readWhole(
        of transfer: Transfer, _ result: ExchangeResult, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) {
        let id = transfer.task.id
        let isContent = result.head.map { head in
            transfer.specification.acceptableStatusCodes.contains { $0.contains(head.status) }
        }
        let reader = transfer.contentReader(folder, total: result.length, checksPieces: isContent ?? false)
        transfers[id]?.whole = (result, reader)
        live.finalizing(id)
        let inbox = inbox
        group.addTask {
            let read: Result<Range<Int64>?, SystemError>
            do throws(SystemError) {
                try await reader.truncate()
                read = .success(try await reader.read(to: result.length))
            } catch { read = .failure(error) }
            inbox.tell(.read(id, reader, read))
        }
    }

    /// Takes what came of reading.
    func read(
        _ id: TaskID, _ reader: ContentReader, _ result: Result<Range<Int64>?, SystemError>,
        _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        guard var transfer = transfers[id] else { return }
        if let whole = transfer.whole, whole.reader === reader {
            transfer.whole = nil
            transfers[id] = transfer
            return await end(transfer, whole.result, read: reader, result, &group)
        }
        guard var segmented = transfer.segmented, segmented.reader === reader else { return }
        segmented.isReading = false
        var unwanted: [ExchangeID] = []
        switch result {
        case .success(nil): segmented.plan.verify(upTo: reader.position)
        case .success(let piece?):
            transfer.progress.noteFetchedTwice(Int64(piece.count))
            unwanted = segmented.plan.reject(piece).map(ExchangeID.init)
            segmented.failure = nil
            log.of(transfer.name).warning("a piece is not what it should be", ("offset", piece.lowerBound))
        case .failure(let error):
            segmented.ending = .disk(error)
            unwanted = Array(segmented.connections.keys)
        }
        transfer.segmented = segmented
        transfers[id] = transfer
        for exchange in unwanted { engine.stop(exchange) }
        widening.insert(id)
        readBehind(id, &group)
        await proceed(id, &group)
    }

    private func end(
        _ transfer: Transfer, _ result: ExchangeResult, read reader: ContentReader,
        _ read: Result<Range<Int64>?, SystemError>, _ group: inout ThrowingDiscardingTaskGroup<any Error>
    ) async {
        var (transfer, result) = (transfer, result)
        switch read {
        case .success(let piece):
            transfer.wrongPiece = piece
            result.digests = reader.finish()
            if transfer.stopReason != nil { result.outcome = .stopped }
            await judge(transfer, result, &group)
        case .failure(let error):
            result.outcome = .failed(.disk(errno: error.errno))
            await judge(transfer, result, &group)
        }
    }
}
