import CZlib

/// Compresses a stream of bytes as gzip (RFC 1952).
///
/// The corresponding C functions are `deflateInit2`, `deflate` and `deflateEnd`.
package final class Gzip {
    private let stream: UnsafeMutablePointer<z_stream>

    /// - Parameter length: The length of the input, if it is known: a short input needs little memory.
    package init(length: Int = .max) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let window: Int32 = length <= 4096 ? 12 : 15
        // The fastest level: JSON shrinks to a fifth, and with the default level to a sixth, in three times the time.
        let code = deflateInit_gzip(stream, 1, window, window - 7)
        precondition(code == Z_OK, "deflateInit2: \(code)")
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Adds bytes, and returns the output available so far.
    package func add(_ bytes: [UInt8]) -> [UInt8] { deflate(bytes, Z_NO_FLUSH) }

    /// Adds the last bytes, and returns the rest of the output.
    package func finish(_ bytes: [UInt8] = []) -> [UInt8] { deflate(bytes, Z_FINISH) }

    /// Bytes compressed in one step.
    package static func compress(_ bytes: [UInt8]) -> [UInt8] { Gzip(length: bytes.count).finish(bytes) }

    private func deflate(_ bytes: [UInt8], _ flush: Int32) -> [UInt8] {
        // zlib takes a mutable pointer, but does not write through it.
        var bytes = bytes
        return bytes.withUnsafeMutableBufferPointer { input in
            stream.pointee.next_in = input.baseAddress
            stream.pointee.avail_in = UInt32(input.count)
            var output: [UInt8] = []
            repeat {
                let room = Int(deflateBound(stream, UInt(stream.pointee.avail_in)))
                output += [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
                    stream.pointee.next_out = buffer.baseAddress
                    stream.pointee.avail_out = UInt32(room)
                    let code = CZlib.deflate(stream, flush)
                    precondition(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR, "deflate: \(code)")
                    count = room - Int(stream.pointee.avail_out)
                }
            } while stream.pointee.avail_out == 0
            return output
        }
    }
}

@available(*, unavailable)
extension Gzip: Sendable {}
