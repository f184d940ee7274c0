import Core
import Testing

@testable import Service
@testable import Transfers

struct BodyWritersTests {
    @Test func `The number of concurrent body writers is limited, and each end frees a slot`() throws {
        let writers = BodyWriters()
        var permits = try (0..<BodyWriters.most).map { try writers.take(for: AppID(Int64($0 % 3))) }
        #expect(throws: TooManyBodies.self) { try writers.take(for: AppID(1)) }
        permits.removeLast()
        permits.append(try writers.take(for: AppID(1)))
        #expect(throws: TooManyBodies.self) { try writers.take(for: AppID(1)) }
        permits = []
        _ = try writers.take(for: AppID(1))
    }

    @Test func `One app leaves half of the places to others`() throws {
        let writers = BodyWriters()
        var permits = try (0..<BodyWriters.most / 2).map { _ in try writers.take(for: AppID(1)) }
        #expect(throws: TooManyBodies.self) { try writers.take(for: AppID(1)) }
        permits.append(try writers.take(for: AppID(2)))
        permits.removeFirst()
        permits.append(try writers.take(for: AppID(1)))
        #expect(throws: TooManyBodies.self) { try writers.take(for: AppID(1)) }
    }

    @Test func `The rows of bodies in flight are kept until their release`() throws {
        let writers = BodyWriters()
        var permit: BodyWriters.Permit? = try writers.take(for: AppID(1))
        permit?.keep(row: 7)
        let other = try writers.take(for: AppID(1))
        other.keep(row: 8)
        #expect(writers.rows.sorted() == [7, 8])
        other.letGo()
        #expect(writers.rows == [7])
        permit = nil
        #expect(writers.rows == [])
    }
}
