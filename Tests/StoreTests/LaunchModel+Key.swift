@testable import Core

extension LaunchModel {
    /// Equal bytes for states with the same future: times are relative to now, event numbers to the acknowledged one,
    /// times in the distant past are equal, and equivalent sessions, clients and tasks are interchangeable.
    var key: [UInt8] {
        var bodies = sessions.indices.map { (session: $0, key: encoded($0)) }
        bodies.sort { $0.key.lexicographicallyPrecedes($1.key) }
        var key: [UInt8] = [
            UInt8(scope.crashes), UInt8(scope.failures), UInt8(scope.parts), UInt8(scope.arrivals),
            UInt8(scope.questions), UInt8(scope.redeliveries),
        ]
        for body in bodies { key += body.key }
        var places: [UInt8] = []
        for client in clients {
            switch client {
            case .away: places.append(0)
            case .stream(let s): places.append(10 + UInt8(bodies.firstIndex { $0.session == s } ?? 0))
            case .lease(let s, _): places.append(20 + UInt8(bodies.firstIndex { $0.session == s } ?? 0))
            }
        }
        return key + places.sorted()
    }

    private func encoded(_ s: Int) -> [UInt8] {
        let session = sessions[s]
        let book = session.book
        var key: [UInt8] = []
        key.reserveCapacity(32)
        var tasks = session.tasks.indices.map { task in
            [
                place(of: session.tasks[task]?.phase),
                number(session.questions[task], after: book.acknowledgedSeq),
            ]
        }
        tasks.sort { $0.lexicographicallyPrecedes($1) }
        for task in tasks { key += task }
        for seq in [book.lastSeq, book.lastCompletionSeq, book.exhaustedSeq] {
            key.append(number(seq, after: book.acknowledgedSeq))
        }
        key.append(UInt8(book.idleCompletions + 1))
        key.append(moment(book.notBefore, past: 0))
        key.append(moment(session.lastDetachedAt, past: -1))
        key.append(session.check.map { moment($0, past: 0) } ?? 0)
        let attachment = session.attachment
        key.append(attachment.wasTakenOver ? 1 : 0)
        key.append(attachment.epoch == 0 ? 0 : 1)
        if let lease = attachment.lease {
            key.append(moment(lease.expiresAt, past: -1))
            switch lease.launchId {
            case nil: key.append(1)
            case session.launch?.name: key.append(2)
            default: key.append(3)
            }
        } else {
            key += [0, attachment.endedAt.map { moment($0, past: -1) } ?? moment(now - .seconds(3600), past: -1)]
        }
        for launch in [session.launch, session.late] {
            guard let launch else {
                key.append(0)
                continue
            }
            key += [
                place(of: launch.state.phase) + 1, launch.isTold ? 1 : 0, UInt8(launch.state.attempts ?? 0),
                number(launch.lastSeq, after: book.acknowledgedSeq),
                launch.state.dueAt.map { moment($0, past: 0) } ?? 0,
            ]
        }
        return key
    }

    /// The index of a case among all of its type; one more than the last for `nil`.
    private func place<Value: CaseIterable & Equatable>(of value: Value?) -> UInt8 {
        UInt8(Array(Value.allCases).firstIndex { $0 == value } ?? Value.allCases.count)
    }

    private func number(_ seq: Int64, after acknowledged: Int64) -> UInt8 {
        UInt8(min(250, max(0, seq - acknowledged)))
    }

    /// Seconds from now, as a byte; times before `past` seconds of grace are equal.
    private func moment(_ time: Timestamp, past: Int64) -> UInt8 {
        let distance = (time.milliseconds - now.milliseconds) / 1000
        return UInt8(100 + min(100, max(past * LaunchRule.grace.milliseconds / 1000, distance)))
    }
}
