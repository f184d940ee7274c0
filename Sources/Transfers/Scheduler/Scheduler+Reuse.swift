import Base
import Core
import Store
import TransferEngine

/// Tasks that the cache, or the transfer of another task, may serve.
extension Scheduler {
    /// Asks the store how a task gets its content, outside the loop: the answer is a commit.
    func consult(_ flight: Flight) {
        let question = flight.transfer.cacheQuestion(
            cookies: cookies(of: flight.transfer, for: flight.transfer.taskURL) ?? [])
        flight.transfer.attempt.reuse = Reuse(key: question.key)
        let (id, name, inbox) = (flight.transfer.id, flight.transfer.name, inbox)
        turn.errands.append { [self] in
            do {
                let (answer, aftermath) = try await store.cache.consult(question, at: clock.now)
                outlet.handle(aftermath)
                inbox.tell(.event(id, Incident(.consulted(answer))))
            } catch {
                log.of(name).error("the cache could not be read", ("error", "\(error)"))
                inbox.tell(.event(id, Incident(.failed(.start(error)))))
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
                settlement.landing = content.flatMap { content in
                    finish.sharing.map { Landing($0.cached, $0.key, isReusable: $0.isReusable, content: content) }
                }
            } catch {
                log.of(transfer.name).warning("content could not be left to others", ("error", "\(error)"))
            }
            handIn(settlement)
        }
    }
}
