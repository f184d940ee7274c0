import Base
import Core
import Store
import TransferEngine

/// Tasks that the cache, or the transfer of another task, may serve.
extension Scheduler {
    /// Asks the store how a task gets its content.
    func consult(_ flight: Flight) {
        let question = flight.transfer.cacheQuestion(
            cookies: cookies(of: flight.transfer, for: flight.transfer.taskURL) ?? [])
        flight.transfer.attempt.reuse = Reuse(key: question.key)
        turn.questions.append((question, flight.transfer.name))
    }

    /// Tells the store that the response of a transfer serves no other task.
    func forbidReuse(of transfer: Transfer) {
        var settlement = Settlement(task: transfer.id, .advanced(transfer.progress))
        settlement.isNotReusable = true
        batch.settlements.append(settlement)
    }

    /// Has a task of another session fetch for those that wait for a transfer and are not of its session.
    func divideFlight(of transfer: Transfer) {
        var settlement = Settlement(task: transfer.id, .advanced(transfer.progress))
        settlement.dividesFlight = true
        batch.settlements.append(settlement)
    }

    /// Hands the questions of a turn to the store, outside the loop: the answers are commits.
    func askCache() {
        var rest = turn.questions[...]
        while !rest.isEmpty {
            let some = Array(rest.prefix(Store.Cache.questionsAtOnce))
            turn.errands.append { await self.consult(some) }
            rest = rest.dropFirst(some.count)
        }
        turn.questions = []
    }

    private nonisolated func consult(_ asked: [(question: CacheQuestion, name: TaskName)]) async {
        do {
            let (answers, aftermath) = try await store.cache.consult(asked.map(\.question), at: clock.now)
            outlet.handle(aftermath)
            for ((question, _), answer) in zip(asked, answers) {
                if case .follow = answer { outlet.arrivals.follows(question.task) }
                inbox.tell(.event(question.task, Incident(.consulted(answer))))
            }
        } catch  where asked.count > 1 && Store.Obstacle(error) == nil {
            // The row of one task may be at fault.
            for one in asked { await consult([one]) }
        } catch {
            for (question, name) in asked {
                log.of(name).error("the cache could not be read", ("error", "\(error)"))
                inbox.tell(.event(question.task, Incident(.failed(.start(error)))))
            }
        }
    }

    /// Leaves a content to the tasks that wait for it, and settles its own task without it.
    func leave(_ finish: Transfer.Finish, _ finisher: ContentFinisher, _ transfer: Transfer) {
        guard let verdict = finish.verdict else { return }
        turn.errands.append { [self] in
            var settlement = finish.settlement(of: transfer.id)
            settlement.verdict = verdict
            do {
                let content = try await finisher.contentForOthers(
                    transfer.task, .succeeded, finish.source, isOnlyForOthers: true)
                settlement.landing = content.flatMap { finish.sharing?.landing($0) }
            } catch {
                log.of(transfer.name).warning("a content could not be left to other tasks", ("error", "\(error)"))
            }
            handIn(settlement)
        }
    }
}
