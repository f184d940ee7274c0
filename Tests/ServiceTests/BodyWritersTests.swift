import Testing

@testable import Service

struct BodyWritersTests {
    @Test func `So many bodies are written at a time, and each makes room when it is over`() throws {
        let writers = BodyWriters()
        var permits = try (0..<BodyWriters.most).map { _ in try writers.take() }
        #expect(throws: ServiceError.overloaded) { try writers.take() }
        permits.removeLast()
        permits.append(try writers.take())
        #expect(throws: ServiceError.overloaded) { try writers.take() }
        permits = []
        _ = try writers.take()
    }
}
