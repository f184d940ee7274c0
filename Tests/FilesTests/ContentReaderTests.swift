import Base
import Formats
import Glibc
import TestSupport
import Testing

@testable import Files

@Suite struct ContentReaderTests {
    private let folder = TemporaryFolder()
    private let disk: DiskQueue
    private let bytes = Content.bytes(seed: 1, length: 10_000_000)

    init() throws { disk = try DiskQueue(threads: 2) }

    private func pieces(of length: Int) -> PieceDigests {
        let values = stride(from: 0, to: bytes.count, by: length).map {
            Digest.of(Array(bytes[$0..<min(bytes.count, $0 + length)]), .md5).hexadecimal
        }
        return PieceDigests(length: Int64(length), algorithm: .md5, values: values)
    }

    private func reader(_ pieces: PieceDigests?) -> ContentReader {
        ContentReader(folder.file("a"), disk, total: Int64(bytes.count), [.sha256, .md5], pieces)
    }

    private func write(_ bytes: [UInt8], at offset: Int64) throws {
        let file = try OpenFile.open(folder.file("a"), O_RDWR | O_CREAT)
        try file.write(bytes, at: offset)
    }

    @Test(arguments: [1, 999_999, 4 << 20, 1 << 30])
    func `A file that is read in steps has the digests of the whole`(step: Int) async throws {
        try write(bytes, at: 0)
        let reader = reader(pieces(of: 3_000_000))
        for end in [step, step * 2, step * 5, bytes.count] {
            #expect(try await reader.read(to: Int64(min(end, bytes.count))) == nil)
        }
        #expect(reader.position == Int64(bytes.count))
        #expect(reader.finish() == [.sha256: Digest.of(bytes), .md5: Digest.of(bytes, .md5)])
    }

    @Test
    func `A wrong piece is read again after it was fetched again`() async throws {
        try write(bytes, at: 0)
        try write([bytes[7_000_000] ^ 1], at: 7_000_000)
        let reader = reader(pieces(of: 3_000_000))
        #expect(try await reader.read(to: 8_000_000) == nil)
        for _ in 0..<2 { #expect(try await reader.read(to: 10_000_000) == 6_000_000..<9_000_000) }
        #expect(reader.position == 6_000_000)
        // The wrong piece was removed from the file.
        #expect(readFile(folder.file("a"))?[6_000_000..<9_000_000].allSatisfy { $0 == 0 } == true)
        try write(Array(bytes[6_000_000..<9_000_000]), at: 6_000_000)
        #expect(try await reader.read(to: 10_000_000) == nil)
        #expect(reader.finish()[.sha256] == Digest.of(bytes))
    }

    @Test
    func `A missing piece digest and a short file are reported`() async throws {
        try write(bytes, at: 0)
        let few = PieceDigests(
            length: 3_000_000, algorithm: .md5, values: pieces(of: 3_000_000).values.dropLast())
        #expect(try await reader(few).read(to: 10_000_000) == 9_000_000..<10_000_000)
        let long = ContentReader(folder.file("a"), disk, total: 20_000_000, [.sha256], nil)
        await #expect(throws: SystemError.self) { try await long.read(to: 20_000_000) }
    }

    @Test
    func `Bytes of an earlier, longer content are cut off`() async throws {
        try write(bytes + [1, 2, 3], at: 0)
        let reader = reader(nil)
        try await reader.truncate()
        #expect(readFile(folder.file("a"))?.count == bytes.count)
    }
}
