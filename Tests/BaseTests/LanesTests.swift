import Base
import Testing

@Suite struct LanesTests {
    private struct Fault: Error {}

    @Test(.timeLimit(.minutes(1)))
    func `The first error cancels the other lanes`() async {
        await #expect(throws: Fault.self) {
            try await inLanes([0, 1, 2, 3], 2) { element in
                if element == 0 { throw Fault() }
                await Doorbell().wait(until: nil)
                try Task.checkCancellation()
            }
        }
    }
}
