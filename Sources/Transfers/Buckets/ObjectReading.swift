package import Base
package import Buckets
package import Core

/// The number of concurrent readers of the bucket of contents, which share the memory reserved for them.
final class ObjectReaders: Sendable {
    /// Bytes that all readers together have in memory, with at most 512 readers.
    private static let memory: Int64 = 256 << 20
    /// Per reader: one piece is sent, copied for that, and another one is being read.
    private static let piecesAtOnce: Int64 = 4

    private let count = Locked<Int64>(0)

    func begin() { count.withLock { $0 += 1 } }

    func end() { count.withLock { $0 -= 1 } }

    /// Bytes per request.
    var pieceLength: Int64 {
        let share = Self.memory / Self.piecesAtOnce / max(1, count.withLock { $0 })
        return min(max(128 << 10, share), 2 << 20)
    }
}

/// Bytes of objects in the bucket of contents, read in order: the next piece while one is being used.
package struct ObjectReading: Sendable {
    private let client: BucketClient
    private let readers: ObjectReaders
    private let objects: [StoredObject]
    private let range: Range<Int64>
    /// Read in advance, so that a missing or unreachable object is detected before the response begins.
    private let first: [UInt8]
    private let log: Log

    /// - Parameter range: Of the bytes of all objects, one after the other.
    package init(
        _ objects: [StoredObject], _ range: Range<Int64>, _ contents: ContentsBucket, log: Log
    ) async throws(BucketFault) {
        client = contents.client
        readers = contents.readers
        self.objects = objects
        self.range = range
        self.log = log
        let end = min(range.upperBound, range.lowerBound + readers.pieceLength)
        first = try await objects.piece(at: range.lowerBound, to: end, client)
    }

    /// Passes all bytes to `take`.
    ///
    /// - Throws: ``BucketFault``, and the errors of `take`.
    package func copy(to take: @Sendable ([UInt8]) async throws -> Void) async throws {
        readers.begin()
        defer { readers.end() }
        var (piece, end) = (first, range.lowerBound + Int64(first.count))
        while true {
            let offset = end
            async let next = offset < range.upperBound ? pieceLogged(at: offset) : []
            try await take(piece)
            piece = try await next
            guard !piece.isEmpty else { return }
            end += Int64(piece.count)
        }
    }

    private func pieceLogged(at offset: Int64) async throws(BucketFault) -> [UInt8] {
        do throws(BucketFault) {
            return try await objects.piece(
                at: offset, to: min(range.upperBound, offset + readers.pieceLength), client)
        } catch {
            if !Task.isCancelled {
                log.warning(
                    "reading a content from its bucket failed", ("code", error.code), ("message", error.message))
            }
            throw error
        }
    }
}

extension [StoredObject] {
    /// Bytes of consecutive objects.
    package func bytes(_ range: Range<Int64>, _ client: BucketClient) async throws(BucketFault) -> [UInt8] {
        var (bytes, offset) = ([UInt8](), range.lowerBound)
        while offset < range.upperBound {
            let piece = try await piece(at: offset, to: range.upperBound, client)
            guard !piece.isEmpty else { throw .unexpected("The stored bytes became fewer.") }
            bytes += piece
            offset += Int64(piece.count)
        }
        return bytes
    }

    /// Some bytes of one object, from an offset on; none at the end.
    func piece(
        at offset: Int64, to end: Int64, _ client: BucketClient
    ) async throws(BucketFault) -> [UInt8] {
        var start: Int64 = 0
        for object in self {
            if offset < start + object.length {
                let last = Swift.min(end, start + object.length)
                return try await client.read(object.key, (offset - start)..<(last - start))
            }
            start += object.length
        }
        return []
    }
}
