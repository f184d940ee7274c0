import Testing

@testable import Core

@Suite struct WebhookHealthTests {
    @Test func `The circuit breaker opens after five failures within half a minute or more, for growing times`() {
        var health = WebhookHealth()
        for second in [0.0, 1, 2, 3, 4] { _ = health.failed(at: .after(second)) }
        #expect(health.openUntil == nil)
        _ = health.failed(at: .after(30))
        #expect(health.openUntil == .after(60))
        #expect(health.places(of: 4, at: .after(59)) == 0)
        #expect(health.places(of: 4, at: .after(60)) == 1)
        // Attempts in flight when the breaker opened do not count.
        _ = health.failed(at: .after(31))
        #expect(health.openUntil == .after(60))
        var now = 60.0
        var pauses: [Double] = []
        for _ in 0..<7 {
            _ = health.failed(at: .after(now))
            let until = health.openUntil ?? .after(now)
            pauses.append((until - .after(now)).seconds)
            now += pauses.last ?? 0
        }
        #expect(pauses == [60, 120, 240, 480, 600, 600, 600])
        #expect(WebhookHealth().places(of: 4, at: .after(now)) == 4)
    }

    @Test func `A webhook is disabled after five days and ten failures`() {
        var health = WebhookHealth()
        let moments = [0] + Array(repeating: 86_400.0 * 6, count: 9)
        let verdicts = moments.map { health.failed(at: .after($0)) }
        #expect(verdicts == Array(repeating: false, count: 9) + [true])
    }
}
