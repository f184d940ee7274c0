import Testing

@testable import Service
@testable import Transfers

struct BodyWritersTests {
    @Test func `The number of concurrent body writers is limited, and each end frees a slot`() throws {
        let writers = BodyWriters()
        var permits = try (0..<BodyWriters.most).map { _ in try writers.take() }
        #expect(throws: TooManyBodies.self) { try writers.take() }
        permits.removeLast()
        permits.append(try writers.take())
        #expect(throws: TooManyBodies.self) { try writers.take() }
        permits = []
        _ = try writers.take()
    }

    @Test func `The rows of bodies in flight are kept until their release`() throws {
        let writers = BodyWriters()
        var permit: BodyWriters.Permit? = try writers.take()
        permit?.keep(row: 7)
        let other = try writers.take()
        other.keep(row: 8)
        #expect(writers.rows.sorted() == [7, 8])
        other.letGo()
        #expect(writers.rows == [7])
        permit = nil
        #expect(writers.rows == [])
    }
}
