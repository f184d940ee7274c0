import Core
import SQL

/// The columns of `live` that hold a task's life until it is completed.
struct LiveColumns {
    var phase: String?
    var dueAt: Int64?
    var deadline: Int64?
    var remaining: Int64?
    var question: Int64?
    var diskNeeded: Int64 = 0
    var diskKept: Int64 = 0
    var diskNotBefore: Int64 = 0

    init(_ life: TaskLife) {
        phase = life.phase?.rawValue
        dueAt = life.dueAt?.milliseconds
        deadline = life.deadline?.milliseconds
        question = life.question?.rawValue
        if case .suspended(let left, _) = life { remaining = left.milliseconds }
        if case .running(.waitingForDisk(let needed, let kept, let notBefore), _) = life {
            (diskNeeded, diskKept, diskNotBefore) = (needed, kept, notBefore.milliseconds)
        }
    }
}

extension TaskLife {
    /// The life in a row of `live`. A phase without its data counts as unknown.
    init(live row: Row) throws(UnknownValue) {
        let phase: Phase = try row.value("stage")
        func known<Value>(_ value: Value?) throws(UnknownValue) -> Value {
            guard let value else { throw UnknownValue(type: "TaskLife", word: "\(phase) without its data") }
            return value
        }
        let question = row.integerOrNil("question").map { QuestionID($0, publicId: row.textOrNil("question_id")) }
        if phase == .suspended {
            let remaining = try known(row.integerOrNil("resource_remaining"))
            self = .suspended(remaining: .milliseconds(remaining), question: question)
            return
        }
        let stage: Stage =
            switch phase {
            case .suspended, .queued: .queued
            case .quarantined: .quarantined
            case .active: .active
            case .following: .following
            case .delayed: .delayed(until: try known(row.timeOrNil("due_at")))
            case .retryWait: .retryWait(until: try known(row.timeOrNil("due_at")))
            case .waitingForConnectivity: .waitingForConnectivity(until: try known(row.timeOrNil("due_at")))
            case .awaitingAnswer: .awaitingAnswer(try known(question))
            case .waitingForDisk:
                .waitingForDisk(
                    needed: row.integer("disk_needed"), kept: row.integer("disk_kept"),
                    notBefore: row.time("disk_not_before"))
            }
        self = .running(stage, deadline: try known(row.timeOrNil("resource_deadline")))
    }

    /// The life in a row of `live`, or in a completed task's row of `task`.
    init(_ row: Row, _ documents: Documents) throws {
        guard row.isNull("stage") else {
            self = try TaskLife(live: row)
            return
        }
        guard let outcome: Outcome = try row.valueOrNil("outcome"), let result = row.blobOrNil("result_document"),
            let completedAt = row.timeOrNil("completed_at")
        else { throw UnknownValue(type: "TaskLife", word: row.text("state")) }
        self = .completed(outcome, try documents.decode(TaskResult.self, result), at: completedAt)
    }
}
