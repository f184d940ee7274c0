import Foundation

@testable import Core
@testable import Formats
@testable import Wire
@testable import WireMapping

/// Foundation's parser accepts every text that this parser accepts. A written value is read back equal.
func checkJSON(_ bytes: [UInt8]) throws {
    let value: JSON
    do throws(JSONError) { value = try JSON.parse(bytes) } catch {
        switch error {
        case .malformed(let offset, _):
            try hold((0...bytes.count).contains(offset), "the offset \(offset) lies outside")
        case .invalid(let faults): try hold((1...Faults.maximumCount).contains(faults.count), "\(faults.count) faults")
        }
        return
    }
    let reference = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
    try hold(reference != nil, "Foundation refuses what is accepted")
    let again = try JSON.parse(value.jsonBytes)
    try hold(again == value && again.jsonBytes == value.jsonBytes, "a value changes when it is written and read")
}

// MARK: At rest

private let documents: [any Shape.Type] = [
    TaskSpecification.self, Core.TaskProgress.self, TaskResult.self, ResumePoint.self, SegmentRecord.self,
    Core.SessionConfiguration.self, Core.BackgroundRefresh.self, MultipartUpload.self, AttemptLedger.self,
    Core.Question.self, Core.Answer.self, Core.Conditions.self, WebhookSettings.self, PlannedMove.self,
]

/// Documents at rest, and unsealed resume data: both readers of a text return the same value.
func checkDocument(_ bytes: [UInt8]) throws {
    guard let (type, rest) = choose(documents, by: bytes) else { return }
    try check(type, atRest: rest)
}

private func check<Value: Shape>(_ type: Value.Type, atRest bytes: [UInt8]) throws {
    let quick = Value.inOrder(bytes)
    let faults = Faults()
    let read = (try? JSON.parse(bytes, allowsNull: true)).flatMap {
        Value.read($0, nil, JSONPosition(nil, in: nil, faults, .tolerant))
    }
    let slow = faults.list.isEmpty ? read : nil
    try hold(quick == nil || quick == slow, "\(type) depends on the way in which it is read")
    guard let slow else { return }
    try hold(Value.inOrder(slow.bytesAtRest) == slow, "\(type) changes at rest")
}

// MARK: On the wire

private let shapes: [any Shape.Type] = [
    TaskCreation.self, BatchCreation.self, SessionCreation.self, SessionPut.self, SessionChange.self, TaskChange.self,
    TaskSelection.self, AppCreation.self, AppChange.self, OwnAppChange.self, CredentialCreation.self, Answer.self,
    EventAck.self, LaunchSelection.self, LaunchCompletion.self, Conditions.self, BackgroundRefreshChange.self,
    AppKeyCreation.self, SecretRotation.self, AttachmentRequest.self, TaskCancellation.self, Event.self, Session.self,
    SessionTask.self, Launch.self, Question.self, Problem.self, App.self, WebhookPayload.self, StoredBody.self,
    Batch.self, LineResult.self, SelectionAnswer.self, Page<SessionTask>.self, EventPage<Event>.self,
]

/// Requests and responses, as read by the service and by its clients: a written value is read back equal.
func checkShape(_ bytes: [UInt8]) throws {
    guard let (type, rest) = choose(shapes, by: bytes) else { return }
    try check(type, onTheWire: rest)
}

private func check<Value: Shape>(_ type: Value.Type, onTheWire bytes: [UInt8]) throws {
    for mode in [ReadingMode.strict, .tolerant] {
        guard let value = try? Value(parsing: bytes, mode) else { continue }
        try hold((try? Value(parsing: value.jsonBytes, mode)) == value, "\(type) changes when it is written and read")
        try hold((try? Value(parsing: bytes, .tolerant)) != nil, "a tolerant reader refuses a \(type)")
    }
}

/// An app's task up to the store: the service stores and shows every task that it accepts.
func checkCreation(_ bytes: [UInt8]) throws {
    guard let creation = try? TaskCreation(parsing: bytes) else { return }
    let specification = TaskOrder(creation).specification
    try hold(TaskSpecification.inOrder(specification.bytesAtRest) == specification, "a task changes at rest")
    var again = TaskSpecification(kind: specification.kind, request: specification.request)
    again.take(TaskTerms(specification))
    try hold(again == specification, "a task changes when it is shown")
    let terms = creation.terms
    try hold(specification.metadata.count == terms.metadata.count, "metadata are lost")
    try hold(specification.acceptableStatusCodes.count == terms.acceptableStatusCodes.count, "status codes are lost")
    try hold((specification.earliestBeginDate == nil) == (terms.earliestBeginDate == nil), "a begin date is lost")
    try hold((specification.pieces == nil) == (terms.pieces == nil), "pieces are lost")
}

/// A session's configuration up to the store.
func checkConfiguration(_ bytes: [UInt8]) throws {
    guard let wire = try? Wire.SessionConfiguration(parsing: bytes) else { return }
    let core = Core.SessionConfiguration(wire)
    try hold(Core.SessionConfiguration.inOrder(core.bytesAtRest) == core, "a configuration changes at rest")
    let shown = Wire.SessionConfiguration(core)
    let again = Wire.SessionConfiguration(Core.SessionConfiguration(shown))
    try hold(again == shown, "a configuration changes when it is shown")
}
