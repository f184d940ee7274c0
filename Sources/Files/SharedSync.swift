import Base
import Glibc

/// Syncs a file for all its stretches: one sync reports the durable mark of each.
///
/// A request while a sync is in flight waits for the next one, together with all later requests. After a failure every
/// request fails: the kernel reports a failure once, and the lost bytes may belong to any request.
package final class SharedSync: Sendable {
    typealias News = @Sendable (Result<PartialFile.Mark, SystemError>) -> PartialFile.News

    private struct Member {
        weak var file: PartialFile?
        /// The offset reported last.
        var told: Int64
    }

    private struct State {
        var members: [ObjectIdentifier: Member] = [:]
        var asking: [(file: PartialFile, news: News)] = []
        var isBusy = false
        var failure: SystemError?
    }

    private let state = Locked(State())

    package init() {}

    /// Reports each sync to a file, whichever file requested it.
    func join(_ file: PartialFile, at offset: Int64) {
        state.withLock { $0.members[ObjectIdentifier(file)] = Member(file: file, told: offset) }
    }

    /// Makes the bytes written so far durable, on a disk thread.
    ///
    /// - Parameter isLast: Whether the file receives no reports of other syncs any more.
    func ask(_ file: PartialFile, isLast: Bool = false, _ news: @escaping News) {
        let begins = state.withLock { state in
            if isLast { state.members[ObjectIdentifier(file)] = nil }
            state.asking.append((file, news))
            defer { state.isBusy = true }
            return !state.isBusy
        }
        guard begins, !file.disk.postSteps(.short, { self.step(file) }) else { return }
        let asking = state.withLock { state in
            state.isBusy = false
            return state.asking.takeAll()
        }
        for (file, news) in asking { file.tell(news(.failure(SystemError("queue", errno: ESHUTDOWN)))) }
    }

    /// Syncs for all requests. Returns whether more arrived meanwhile.
    private func step(_ file: PartialFile) -> Bool {
        let (asking, others, failure) = state.withLock { state in
            let asking = state.asking.takeAll()
            let askers = Set(asking.map { ObjectIdentifier($0.file) })
            state.members = state.members.filter { $0.value.file != nil }
            let others = state.members.values.compactMap(\.file).filter { !askers.contains(ObjectIdentifier($0)) }
            return (asking, others, state.failure)
        }
        let answers = (asking + others.map { ($0, { .synced($0) }) }).map {
            (file: $0.0, mark: $0.0.reached, news: $0.1)
        }
        let error = failure ?? file.syncNow()
        let news = state.withLock { state in
            state.failure = error
            return answers.enumerated().compactMap { index, answer -> (PartialFile, PartialFile.News)? in
                let told = state.members[ObjectIdentifier(answer.file)]?.told ?? .max
                if index >= asking.count, error == nil, answer.mark.offset <= told { return nil }
                state.members[ObjectIdentifier(answer.file)]?.told = answer.mark.offset
                return (answer.file, answer.news(error.map { .failure($0) } ?? .success(answer.mark)))
            }
        }
        for (file, news) in news { file.tell(news) }
        return state.withLock { state in
            state.isBusy = !state.asking.isEmpty
            return state.isBusy
        }
    }
}
