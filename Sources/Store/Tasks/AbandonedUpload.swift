package import Core
import SQL

/// A resumable upload whose task was deleted, with all that the deletion of its resource needs: its rows are gone.
package struct AbandonedUpload: Sendable {
    /// The task, with a body of the right length and no bytes.
    package let task: ClaimedTask
    package let configuration: SessionConfiguration
    package let sessionIdentifier: String
    package let appIdentifier: String
}

extension Store.Tasks {
    /// Leaves the deletion of a task's upload resource to the aftermath, before the task's rows are deleted.
    ///
    /// - Parameter progress: The last stored progress of the task.
    func abandonUpload(of task: TaskID, _ progress: TaskProgress, _ transaction: Transaction) throws {
        guard progress.uploadURL != nil else { return }
        let row = try transaction.db.first(
            """
            SELECT t.session, t.number, t.specification_document, s.configuration_document \
            FROM task t JOIN session s ON s.id = t.session WHERE t.id = ?1
            """, task.rawValue
        ) { row in
            (
                session: SessionID(row.integer("session")), number: row.integer("number"),
                specification: row.blob("specification_document"), configuration: row.blob("configuration_document")
            )
        }
        guard let row else { return }
        let session = try transaction.session(row.session)
        do {
            let specification = try documents.decode(
                TaskSpecification.self, row.specification, sealedAs: Self.context(row.session, row.number))
            guard let length = specification.bodyLength else { return }
            transaction.aftermath.deletedUploads.append(
                AbandonedUpload(
                    task: ClaimedTask(
                        id: task, session: row.session, app: session.app, number: row.number, lane: 0,
                        specification: specification, progress: progress,
                        body: BodyLocation(storage: .bytes([]), length: length, digest: ""), resourceDeadline: nil),
                    configuration: try documents.decode(
                        SessionConfiguration.self, row.configuration,
                        sealedAs: Store.Sessions.context(session.app, session.identifier)),
                    sessionIdentifier: session.identifier, appIdentifier: session.appIdentifier))
        } catch is SealError, is UnreadableDocument {
            // The rows are deleted all the same. The server discards the upload at the end of its own retention.
        }
    }
}
