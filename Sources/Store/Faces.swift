import SQL

/// The operations of the store on one subject. All faces share its database.
protocol Face: Sendable {
    var store: Store { get }
}

extension Face {
    var database: Database { store.database }
    var documents: Documents { store.documents }
    var policies: Store.Policies { store.policies }
    var node: String? { store.node }
}

extension Store {
    package var apps: Apps { Apps(store: self) }
    package var sessions: Sessions { Sessions(store: self) }
    package var tasks: Tasks { Tasks(store: self) }
    package var launches: Launches { Launches(store: self) }
    package var questions: Questions { Questions(store: self) }
    package var files: Files { Files(store: self) }
    package var cache: Cache { Cache(store: self) }
    package var sets: Sets { Sets(store: self) }
    package var nodes: Nodes { Nodes(store: self) }
    package var upkeep: Upkeep { Upkeep(store: self) }

    /// Apps with their keys, webhooks and background refresh, the conditions that the operator declares, and answers to
    /// repeated requests.
    package struct Apps: Face { let store: Store }

    /// Sessions with their events, attachments, clients and cookies.
    package struct Sessions: Face { let store: Store }

    /// Tasks, their queue, and the settlements of their attempts.
    package struct Tasks: Face { let store: Store }

    /// Launches, from their rule to the response of the webhook.
    package struct Launches: Face { let store: Store }

    /// Questions, and the credentials that answer them.
    package struct Questions: Face { let store: Store }

    /// The bytes of contents and bodies: files, objects and rows.
    package struct Files: Face { let store: Store }

    /// Responses that tasks of an app reuse, and transfers that they share.
    package struct Cache: Face { let store: Store }

    /// Sets of files, their versions, and the work on them.
    package struct Sets: Face { let store: Store }

    /// The processes that share the store.
    package struct Nodes: Face { let store: Store }

    /// The removal of expired rows, the counts for metrics, and the master key.
    package struct Upkeep: Face { let store: Store }
}
