@testable import Core

extension LaunchModel {
    /// The steps of clients: attach, stay, leave, acknowledge.
    mutating func meet(_ step: Step) throws {
        switch step {
        case .open(let client, let s):
            scope.arrivals -= 1
            let isFirst = !clients.contains(.stream(s))
            clients[client] = .stream(s)
            if isFirst { try arrive(s) }
        case .close(let client):
            guard case .stream(let s) = clients[client] else { throw Violation(description: "no stream") }
            clients[client] = .away
            guard !clients.contains(.stream(s)) else { return }
            sessions[s].lastDetachedAt = now
            look(s, at: now + LaunchRule.grace)
        case .take(let client, let s, let forLaunch, let takeover):
            scope.arrivals -= 1
            try lease(
                s, .take(ttl: scope.ttl, launchId: forLaunch ? sessions[s].launch?.name : nil, takeover: takeover))
            let epoch = sessions[s].attachment.epoch
            for other in clients.indices {
                if case .lease(s, let old) = clients[other] {
                    guard !sessions[s].attachment.admits(epoch: old, at: now) else {
                        throw Violation(description: "a client that was outrun may act")
                    }
                    clients[other] = .away
                }
            }
            clients[client] = .lease(s, epoch: epoch)
        case .renew(let client):
            guard case .lease(let s, let epoch) = clients[client] else { throw Violation(description: "no lease") }
            try lease(s, .renew(epoch: epoch, ttl: scope.ttl))
        case .release(let client):
            guard case .lease(let s, let epoch) = clients[client] else { throw Violation(description: "no lease") }
            clients[client] = .away
            try lease(s, .release(epoch: epoch))
        case .acknowledge(let client, let through):
            let (s, epoch): (Int, Int64?)
            switch clients[client] {
            case .stream(let session): (s, epoch) = (session, nil)
            case .lease(let session, let number): (s, epoch) = (session, number)
            case .away: throw Violation(description: "nobody acknowledges")
            }
            guard sessions[s].attachment.admits(epoch: epoch, at: now) else { throw Violation(description: "fenced") }
            if through < sessions[s].book.lastSeq { scope.parts -= 1 }
            try acknowledge(s, through: through)
            try settle(s)
        default: throw Violation(description: "\(step) is none of a client's")
        }
    }

    private mutating func lease(_ s: Int, _ event: Attachment.Event) throws {
        let arrival = try sessions[s].attachment.handle(event, at: now)
        if let arrival, arrival.launchId == nil || arrival.launchId != sessions[s].launch?.name {
            try supersede(s)
        }
        try settle(s)
        look(s, at: (sessions[s].attachment.lease?.expiresAt ?? now) + LaunchRule.grace)
    }

    private mutating func arrive(_ s: Int) throws {
        let launch = sessions[s].launch
        try supersede(s)
        if launch != nil, sessions[s].launch == nil { try settle(s) }
    }

    /// A client attached without a launch.
    private mutating func supersede(_ s: Int) throws {
        guard var launch = sessions[s].launch else { return }
        _ = try launch.state.handle(.clientAttached, at: now)
        sessions[s].launch = launch
        guard !launch.state.isOpen else { return }
        sessions[s].launch = nil
        sessions[s].book.closed(launch.id)
        if launch.isTold { sessions[s].late = launch }
    }

    // MARK: Possible steps

    /// Every step that the state allows.
    func steps() -> [Step] {
        var steps: [Step] = []
        for s in sessions.indices {
            addTasks(s, &steps)
            addLaunch(s, &steps)
            if let check = sessions[s].check, check <= now { steps.append(.check(s)) }
        }
        for client in clients.indices { addClient(client, &steps) }
        if (try? next()) != nil { steps.append(.tick) }
        if scope.crashes > 0 { steps.append(.crash) }
        return steps
    }

    private func addTasks(_ s: Int, _ steps: inout [Step]) {
        for (task, life) in sessions[s].tasks.enumerated() {
            switch life?.phase {
            case nil: break
            case .awaitingAnswer: steps.append(.answer(s, task: task))
            default:
                // Tasks of a session are equivalent.
                if sessions[s].tasks.firstIndex(of: life) != task { continue }
                steps.append(.finish(s, task: task))
                if scope.questions > 0 { steps.append(.ask(s, task: task)) }
            }
        }
    }

    private func addLaunch(_ s: Int, _ steps: inout [Step]) {
        let session = sessions[s]
        // A partial completion leaves the last completion unacknowledged.
        let part = session.book.acknowledgedSeq + 1
        let hasPart = scope.parts > 0 && part < session.book.lastCompletionSeq
        if let launch = session.launch {
            switch launch.state {
            case .pending(_, let due): if due <= now { steps.append(.claim(s)) }
            case .delivering(_, let lease):
                steps += [.answered(s), .answeredInline(s, through: nil)]
                if hasPart { steps.append(.answeredInline(s, through: part)) }
                if scope.failures > 0 { steps.append(.failed(s)) }
                if lease <= now { steps.append(.expire(s)) }
            case .launched(_, let deadline): if deadline <= now { steps.append(.expire(s)) }
            default: break
            }
            if launch.isTold, let epoch = admitted(s) {
                steps.append(.complete(s, late: false, through: nil, epoch: epoch))
                if hasPart { steps.append(.complete(s, late: false, through: part, epoch: epoch)) }
            }
        }
        guard let late = session.late else { return }
        if let epoch = admitted(s), late.lastSeq > session.book.acknowledgedSeq {
            steps.append(.complete(s, late: true, through: nil, epoch: epoch))
        }
        if case .exhausted = late.state, scope.redeliveries > 0 { steps.append(.redeliver(s)) }
    }

    /// The epoch with which a client may act, if any.
    func admitted(_ s: Int) -> Int64?? {
        if sessions[s].attachment.admits(epoch: nil, at: now) { return .some(nil) }
        let epoch = sessions[s].attachment.epoch
        return clients.contains(.lease(s, epoch: epoch)) ? .some(epoch) : nil
    }

    private func addClient(_ client: Int, _ steps: inout [Step]) {
        // Clients are equivalent.
        guard clients.firstIndex(of: clients[client]) == client else { return }
        switch clients[client] {
        case .away:
            guard scope.arrivals > 0 else { return }
            for s in sessions.indices {
                steps.append(.open(client: client, s))
                let isHeld = sessions[s].attachment.isHeld(at: now)
                steps.append(.take(client: client, s, forLaunch: false, takeover: isHeld))
                if sessions[s].launch?.isTold == true {
                    steps.append(.take(client: client, s, forLaunch: true, takeover: isHeld))
                }
            }
        case .stream(let s):
            steps.append(.close(client: client))
            if sessions[s].attachment.admits(epoch: nil, at: now) { addAcknowledgements(client, s, &steps) }
        case .lease(let s, _):
            steps.append(.release(client: client))
            if sessions[s].attachment.lease != nil { steps.append(.renew(client: client)) }
            addAcknowledgements(client, s, &steps)
        }
    }

    private func addAcknowledgements(_ client: Int, _ s: Int, _ steps: inout [Step]) {
        let book = sessions[s].book
        guard book.acknowledgedSeq < book.lastSeq else { return }
        steps.append(.acknowledge(client: client, through: book.lastSeq))
        if scope.parts > 0, book.acknowledgedSeq + 1 < book.lastSeq {
            steps.append(.acknowledge(client: client, through: book.acknowledgedSeq + 1))
        }
    }

    /// The next time at which the clock changes the state.
    func next() throws -> Timestamp {
        var moments: [Timestamp] = []
        for s in sessions.indices {
            let session = sessions[s]
            if let due = session.launch?.state.dueAt { moments.append(due) }
            if let check = session.check { moments.append(check) }
            if let lease = session.attachment.lease {
                moments += [lease.expiresAt, lease.expiresAt + LaunchRule.grace]
            } else if let end = session.attachment.endedAt {
                moments.append(end + LaunchRule.grace)
            }
            moments += [session.lastDetachedAt + LaunchRule.grace, session.book.notBefore]
        }
        guard let next = moments.filter({ $0 > now }).min() else {
            throw Violation(description: "the clock has nothing to say")
        }
        return next
    }

    /// The step of a fair world: tasks end, clients leave, the receiver completes.
    func fairStep() -> Step? {
        for s in sessions.indices {
            for (task, life) in sessions[s].tasks.enumerated() {
                if life?.phase == .awaitingAnswer { return .answer(s, task: task) }
                if life != nil { return .finish(s, task: task) }
            }
        }
        for client in clients.indices {
            switch clients[client] {
            case .stream: return .close(client: client)
            case .lease: return .release(client: client)
            case .away: break
            }
        }
        for s in sessions.indices {
            if let check = sessions[s].check, check <= now { return .check(s) }
            switch sessions[s].launch?.state {
            case .pending(_, let due)? where due <= now: return .claim(s)
            case .delivering?: return .answeredInline(s, through: nil)
            case .launched(_, let deadline)?:
                if let epoch = admitted(s) { return .complete(s, late: false, through: nil, epoch: epoch) }
                if deadline <= now { return .expire(s) }
            default: break
            }
        }
        return (try? next()) == nil ? nil : .tick
    }

    /// Whether every event was launched and acknowledged, or its launch is exhausted.
    var isDrained: Bool {
        sessions.allSatisfy { session in
            let known = max(session.book.acknowledgedSeq, session.book.exhaustedSeq)
            return session.isDone && session.launch == nil && known >= session.book.lastCompletionSeq
        }
    }

    // MARK: Invariants

    func holds() throws {
        for s in sessions.indices {
            let session = sessions[s]
            guard session.launch?.id == session.book.openLaunch, session.launch?.state.isOpen != false else {
                throw Violation(description: "the book and the launch of session \(s) disagree")
            }
            guard session.book.acknowledgedSeq <= session.book.lastSeq else {
                throw Violation(description: "acknowledged what there is not")
            }
            // At most one client acts: an epoch before the current one never does.
            for epoch in 0..<session.attachment.epoch where session.attachment.admits(epoch: epoch, at: now) {
                throw Violation(description: "epoch \(epoch) acts in session \(s)")
            }
            if let launch = session.launch, launch.state.dueAt == nil {
                throw Violation(description: "nothing moves the launch of session \(s) on")
            }
            let rule = rule(s)
            // An unacknowledged reason without a client has a launch, or a time for the next check.
            if !rule.reasons.isEmpty, !rule.isAttached, session.launch == nil {
                let latest = max(now, session.book.notBefore, (rule.lastDetachedAt ?? now) + LaunchRule.grace)
                guard let check = session.check, check <= latest else {
                    throw Violation(description: "nobody will launch session \(s): \(rule)")
                }
            }
        }
    }
}
