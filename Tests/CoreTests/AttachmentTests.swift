import TestSupport
import Testing

@testable import Core

@Suite struct AttachmentTests {
    /// Swift Testing also has an `Attachment`.
    typealias Attachment = Core.Attachment

    static let take = Attachment.Event.take(ttl: .seconds(30), launchId: nil, takeover: false)
    static let seize = Attachment.Event.take(ttl: .seconds(30), launchId: "lnch_1", takeover: true)

    /// An attachment after events, one per second from `now`.
    static func after(_ events: [Attachment.Event]) throws -> Attachment {
        var attachment = Attachment()
        for (second, event) in events.enumerated() { try attachment.handle(event, at: .after(Double(second))) }
        return attachment
    }

    @Test func `The first lease has epoch 1 and lasts its time`() throws {
        let attachment = try Self.after([Self.take])
        #expect(attachment.epoch == 1)
        #expect(attachment.isHeld(at: .after(29.999)))
        #expect(!attachment.isHeld(at: .after(30)))
        #expect(attachment.detachedAt(.after(29)) == nil)
        #expect(attachment.detachedAt(.after(60)) == .after(30))
    }

    @Test func `Another client waits for the end of the lease or takes over`() throws {
        var attachment = try Self.after([Self.take])
        #expect(throws: Refused(state: "held", event: "take")) { try attachment.handle(Self.take, at: .after(1)) }
        #expect(attachment.epoch == 1)
        try attachment.handle(Self.seize, at: .after(1))
        #expect(attachment.epoch == 2)
        #expect(attachment.wasTakenOver)
        #expect(!attachment.admits(epoch: 1, at: .after(2)))
        #expect(!attachment.admits(epoch: nil, at: .after(2)))
        #expect(attachment.admits(epoch: 2, at: .after(2)))
        #expect(!attachment.admits(epoch: nil, at: .after(500)))
        #expect(throws: Refused(state: "held", event: "renew")) {
            try attachment.handle(.renew(epoch: 1, ttl: .seconds(5)), at: .after(2))
        }
    }

    @Test func `After an expired lease the next client is not a takeover`() throws {
        var attachment = try Self.after([Self.take])
        #expect(attachment.admits(epoch: nil, at: .after(31)))
        try attachment.handle(Self.seize, at: .after(31))
        #expect(attachment.epoch == 2)
        #expect(!attachment.wasTakenOver)
        try attachment.handle(.release(epoch: 2), at: .after(32))
        #expect(attachment.admits(epoch: nil, at: .after(33)))
        #expect(attachment.admits(epoch: 2, at: .after(33)))
        #expect(!attachment.admits(epoch: 1, at: .after(33)))
    }

    @Test func `The holder can renew a lease after its end, but not after its release`() throws {
        var attachment = try Self.after([Self.take])
        try attachment.handle(.renew(epoch: 1, ttl: .seconds(5)), at: .after(100))
        #expect(attachment.isHeld(at: .after(104)))
        try attachment.handle(.release(epoch: 1), at: .after(101))
        #expect(attachment.detachedAt(.after(102)) == .after(101))
        try attachment.handle(.release(epoch: 1), at: .after(103))
        #expect(attachment.detachedAt(.after(104)) == .after(101))
        #expect(throws: Refused(state: "free", event: "renew")) {
            try attachment.handle(.renew(epoch: 1, ttl: .seconds(5)), at: .after(104))
        }
        #expect(throws: Refused(state: "free", event: "release")) {
            try attachment.handle(.release(epoch: 7), at: .after(104))
        }
    }

    @Test func `Completing a launch releases the lease of the launch and no other`() throws {
        var attachment = try Self.after([Self.seize])
        try attachment.handle(.launchCompleted(launchId: "lnch_2"), at: .after(1))
        #expect(attachment.isHeld(at: .after(1)))
        try attachment.handle(.launchCompleted(launchId: "lnch_1"), at: .after(2))
        #expect(attachment.detachedAt(.after(2)) == .after(2))
        var plain = try Self.after([Self.take])
        try plain.handle(.launchCompleted(launchId: "lnch_1"), at: .after(2))
        #expect(plain.isHeld(at: .after(2)))
    }

    @Test func `Before the first lease no client holds the session`() {
        var attachment = Attachment()
        #expect(attachment.detachedAt(now) == nil)
        #expect(attachment.admits(epoch: nil, at: now))
        #expect(!attachment.admits(epoch: 1, at: now))
        #expect(throws: Refused(state: "free", event: "release")) { try attachment.handle(.release(epoch: 0), at: now) }
        #expect(throws: Refused(state: "free", event: "renew")) {
            try attachment.handle(.renew(epoch: 0, ttl: .seconds(9)), at: now)
        }
    }

    @Test(arguments: 0..<20)
    func `A random walk never lowers the epoch nor admits two clients`(_ seed: Int) {
        var generator = SeededGenerator(state: UInt64(seed))
        var attachment = Attachment()
        var time = now
        for _ in 0..<500 {
            time = time + .seconds(Int.random(in: 0...20, using: &generator))
            let before = attachment
            let epoch = max(0, attachment.epoch - Int64.random(in: 0...1, using: &generator))
            let event: Attachment.Event =
                switch Int.random(in: 0..<5, using: &generator) {
                case 0: Self.take
                case 1: Self.seize
                case 2: .renew(epoch: epoch, ttl: .seconds(30))
                case 3: .release(epoch: epoch)
                default: .launchCompleted(launchId: "lnch_1")
                }
            do { try attachment.handle(event, at: time) } catch { #expect(attachment == before) }
            #expect(attachment.epoch >= before.epoch && attachment.epoch <= before.epoch + 1)
            #expect(!attachment.admits(epoch: attachment.epoch - 1, at: time))
            #expect(attachment.admits(epoch: attachment.epoch, at: time))
            if attachment.isHeld(at: time) { #expect(!attachment.admits(epoch: nil, at: time)) }
        }
    }
}
