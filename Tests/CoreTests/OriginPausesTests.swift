import Testing

@testable import Core

@Suite struct OriginPausesTests {
    static let origin = "https://a:443"

    @Test func `The app that got the response waits in full, other apps for a minute at most`() {
        var pauses = OriginPauses()
        pauses.note(OriginPause(Self.origin, app: 1, retryAfter: .seconds(3600), at: now))
        #expect(pauses.until(Self.origin, app: 1, at: now) == .after(3600))
        #expect(pauses.until(Self.origin, app: 2, at: now) == .after(60))
        #expect(pauses.until(Self.origin, app: 2, at: .after(60)) == nil)
        #expect(pauses.until("http://a:80", app: 1, at: now) == nil)
    }

    @Test func `A later and shorter delay does not shorten the pause`() {
        var pauses = OriginPauses()
        pauses.note(OriginPause(Self.origin, app: 1, retryAfter: .seconds(3600), at: now))
        pauses.note(OriginPause(Self.origin, app: 1, retryAfter: .seconds(5), at: .after(1)))
        pauses.note(OriginPause(Self.origin, app: 2, retryAfter: .seconds(5), at: .after(1)))
        #expect(pauses.until(Self.origin, app: 1, at: .after(2)) == .after(3600))
        #expect(pauses.until(Self.origin, app: 2, at: .after(2)) == .after(60))
    }

    @Test func `Expired pauses are removed`() {
        var pauses = OriginPauses()
        pauses.note(OriginPause(Self.origin, app: 1, retryAfter: .seconds(100), at: now))
        pauses.prune(at: .after(99))
        #expect(!pauses.isEmpty)
        pauses.prune(at: .after(100))
        #expect(pauses.isEmpty)
        #expect(OriginPauses.slowsDown(status: 429) && OriginPauses.slowsDown(status: 503))
        #expect(!OriginPauses.slowsDown(status: 500))
    }
}
