import Core
import Testing

@Suite struct LaunchSlotsTests {
    @Test func `An app has four slots, and one after an attempt without a response`() {
        var slots = LaunchSlots()
        let app = AppID(1)
        for launch in 0..<4 {
            #expect(slots.hasRoom(for: app))
            slots.began(Int64(launch), of: app, at: 0)
        }
        #expect(!slots.hasRoom(for: app))
        for launch in 0..<4 { slots.ended(Int64(launch), of: app, wasAnswered: launch == 3 ? false : true) }
        slots.began(4, of: app, at: 0)
        #expect(!slots.hasRoom(for: app))
        // The outcome is unknown: the service stopped the attempt, or could not make it.
        slots.ended(4, of: app, wasAnswered: nil)
        slots.began(5, of: app, at: 0)
        #expect(!slots.hasRoom(for: app))
        slots.ended(5, of: app, wasAnswered: true)
        slots.began(6, of: app, at: 0)
        #expect(slots.hasRoom(for: app))
    }

    @Test func `The circuit breaker reduces the slots`() {
        var slots = LaunchSlots()
        #expect(slots.hasRoom(for: AppID(1), places: 1))
        #expect(!slots.hasRoom(for: AppID(1), places: 0))
        slots.began(1, of: AppID(1), at: 0)
        #expect(!slots.hasRoom(for: AppID(1), places: 1))
    }

    @Test func `The last slots are for apps with no attempt in flight`() {
        var slots = LaunchSlots()
        for launch in 0..<(LaunchSlots.total - LaunchSlots.kept) {
            slots.began(Int64(launch), of: AppID(Int64(launch / 4)), at: 0)
        }
        slots.ended(0, of: AppID(0), wasAnswered: nil)
        slots.began(100, of: AppID(100), at: 0)
        #expect(!slots.hasRoom(for: AppID(0)))
        for launch in 0..<LaunchSlots.kept {
            #expect(slots.hasRoom(for: AppID(200 + Int64(launch))))
            slots.began(Int64(200 + launch), of: AppID(200 + Int64(launch)), at: 0)
        }
        #expect(!slots.hasFree)
        #expect(!slots.hasRoom(for: AppID(300)))
    }

    @Test func `An attempt that has waited for a second releases its slot`() {
        var slots = LaunchSlots()
        #expect(slots.takeBack(at: 0) == nil)
        for launch in 0..<LaunchSlots.total {
            slots.began(Int64(launch), of: AppID(Int64(launch)), at: Int64(launch))
        }
        #expect(slots.takeBack(at: 999) == 1000)
        #expect(!slots.hasFree)
        #expect(slots.takeBack(at: 1000) == 1001)
        #expect(slots.hasRoom(for: AppID(100)))
        #expect(slots.takeBack(at: 5000) == nil)
        // They still count against their app, and release no slot twice.
        #expect(slots.underWay(of: AppID(0)) == 1)
        slots.ended(0, of: AppID(0), wasAnswered: true)
        #expect(slots.underWay(of: AppID(0)) == 0)
        #expect(slots.busyApps == LaunchSlots.total - 1)
    }
}
