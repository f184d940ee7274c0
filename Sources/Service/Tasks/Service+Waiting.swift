import Base
package import Core
import Files
import Store
import TransferEngine
import Transfers

/// The reasons why tasks wait.
extension Service {
    /// Why a running task does not move, most basic reason first.
    package func waitingReasons(of task: TaskRecord, in session: SessionRecord) -> [WaitingReason] {
        guard case .running(let stage, _) = task.life else { return [] }
        switch stage {
        case .active: return []
        case .delayed(let until):
            return [
                WaitingReason(
                    kind: .earliestBeginDate, detail: "The task begins at its earliestBeginDate.", until: until)
            ]
        case .awaitingAnswer(let question):
            return [
                WaitingReason(
                    kind: .answer, detail: "The app has a question to answer.", questionId: question.publicId)
            ]
        case .waitingForDisk:
            return [WaitingReason(kind: .disk, detail: "The disk has too few free bytes for the rest of the content.")]
        case .retryWait(let until):
            let detail =
                task.crashes > 1
                ? "The service crashed twice while the task ran; the task will run alone."
                : "The last attempt failed; another attempt follows."
            return [WaitingReason(kind: .retry, detail: detail, until: until)]
        case .waitingForConnectivity(let until):
            return [
                WaitingReason(
                    kind: .connectivity, detail: "The network or the host's name could not be reached.", until: until)
            ]
        case .following:
            return [
                WaitingReason(
                    kind: .sameTransfer, detail: "Another task of the app transfers the same response.",
                    leader: task.leader)
            ]
        case .queued, .quarantined:
            if room.left <= 0 {
                return [WaitingReason(kind: .disk, detail: "The disk has too few free bytes for new content.")]
            }
            if settings.contents?.access.refusal != nil {
                return [
                    WaitingReason(
                        kind: .disk,
                        detail: "The bucket of contents refuses this node; the operator has to grant access.")
                ]
            }
            if case .wait(let reasons) = conditionVerdict(of: task, in: session) { return reasons }
            return whoComesFirst(before: task, in: session).map { [$0] } ?? []
        }
    }

    /// The reason why a queued task does not start at once, nil if there is none.
    private func whoComesFirst(before task: TaskRecord, in session: SessionRecord) -> WaitingReason? {
        let now = clock.now
        if task.phase == .quarantined {
            return WaitingReason(
                kind: .capacity,
                detail: "The service crashed twice while the task ran; the task waits until it can run alone.")
        }
        if let until = scheduler.agenda.withLock({ $0.soloEnd }) {
            return WaitingReason(
                kind: .capacity, detail: "A task that may have crashed the service runs alone.", until: until)
        }
        guard let origin = try? ParsedURL(task.specification.request.url).origin else { return nil }
        if let until = scheduler.agenda.withLock({ $0.pauseEnd(of: origin, app: task.app, at: now) }) {
            return WaitingReason(
                kind: .originPause, detail: "The host answered 429 or 503 and is left alone for a while.", until: until)
        }
        let others: String? = scheduler.agenda.withLock { agenda in
            if agenda.freeSlots(.anything) <= 0 {
                "the service's limit of transfers is reached"
            } else if !agenda.leavesSlots(to: task.app) {
                "the few free slots are for apps with fewer transfers"
            } else if agenda.running(at: origin) >= settings.maximumTransfersPerHost {
                "the service's limit for this host is reached"
            } else if agenda.running(at: origin, of: session.id.rawValue)
                >= session.configuration.httpMaximumConnectionsPerHost
            {
                "the session's limit for this host is reached"
            } else if agenda.running(at: origin) + agenda.elsewhere.running(at: origin)
                >= settings.maximumTransfersPerHost
            {
                "the service's limit for this host is reached by all nodes together"
            } else if agenda.running(at: origin, of: session.id.rawValue)
                + agenda.elsewhere.running(at: origin, of: session.id)
                >= session.configuration.httpMaximumConnectionsPerHost
            {
                "the session's limit for this host is reached by all nodes together"
            } else {
                nil
            }
        }
        let elsewhere = nodes.areFull ? "the limit of all nodes is reached" : nil
        return (others ?? elsewhere).map {
            WaitingReason(kind: .capacity, detail: "Other transfers come first: \($0).")
        }
    }

    /// Whether the declared conditions let the task run.
    func conditionVerdict(of task: TaskRecord, in session: SessionRecord) -> Conditions.Verdict {
        conditions.snapshot.verdict(on: session.configuration, until: task.life.deadline)
    }
}
