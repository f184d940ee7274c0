import Testing

@testable import Base

@Suite struct DoorbellTests {
    private let clock = Clock.system

    @Test func `A ring before the wait is remembered once`() async {
        let bell = Doorbell()
        bell.ring()
        bell.ring()
        #expect(await bell.wait(until: nil))
        #expect(await !bell.wait(until: clock.monotonic() + 1))
    }

    @Test func `A deadline in the past still consumes a remembered ring`() async {
        let bell = Doorbell()
        #expect(await !bell.wait(until: 0))
        bell.ring()
        #expect(await bell.wait(until: .min))
        #expect(await !bell.wait(until: 0))
    }

    @Test func `A deadline ends the wait`() async {
        let bell = Doorbell()
        let start = clock.monotonic()
        #expect(await !bell.wait(until: start + 20))
        #expect(clock.monotonic() >= start + 20)
    }

    @Test(arguments: [nil, Int64.max])
    func `Cancellation ends an unlimited wait`(_ deadline: Int64?) async {
        let bell = Doorbell()
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await bell.wait(until: deadline) }
            group.cancelAll()
            #expect(await group.next() == false)
        }
        bell.ring()
        #expect(await bell.wait(until: 0))
    }

    @Test func `Work stored before a ring is always found`() async {
        let bell = Doorbell()
        let work = Locked(0)
        let rounds = 2_000
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<rounds {
                        work.withLock { $0 += 1 }
                        bell.ring()
                        await Task.yield()
                    }
                }
            }
            group.addTask {
                // Every second deadline races with the rings. A lost ring would leave a wait without a deadline
                // blocked.
                var rings = 0
                while work.withLock({ $0 }) < 4 * rounds {
                    rings += 1
                    let deadline = rings.isMultiple(of: 2) ? Clock.system.monotonic() + 1 : nil
                    await bell.wait(until: deadline)
                }
            }
        }
        #expect(work.withLock({ $0 }) == 4 * rounds)
    }
}

@Suite struct BroadcastTests {
    @Test func `A signal wakes every watch of its key and no other watch`() async {
        let broadcast = Broadcast<String>()
        let first = broadcast.watch("a")
        let second = broadcast.watch("a")
        let other = broadcast.watch("b")
        broadcast.signal("a")
        #expect(await first.wait(until: nil))
        #expect(await second.wait(until: nil))
        #expect(await !other.wait(until: 0))
    }

    @Test func `Broadcast keeps nothing for a key without watches`() {
        let broadcast = Broadcast<Int>()
        do {
            let watch = broadcast.watch(1)
            #expect(broadcast.countOfWatches(of: 1) == 1)
            withExtendedLifetime(watch) {}
        }
        #expect(broadcast.countOfWatches(of: 1) == 0)
        broadcast.signal(1)
    }

    @Test func `A change between check and wait is not missed`() async {
        let broadcast = Broadcast<Int>()
        let value = Locked(0)
        let goal = 1_000
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let watch = broadcast.watch(1)
                    while value.withLock({ $0 }) < goal { await watch.wait(until: nil) }
                }
            }
            group.addTask {
                for _ in 0..<goal {
                    value.withLock { $0 += 1 }
                    broadcast.signal(1)
                    await Task.yield()
                }
            }
        }
        #expect(broadcast.countOfWatches(of: 1) == 0)
    }
}
