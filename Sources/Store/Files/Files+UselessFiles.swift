package import Core
import SQL

/// Files that no row refers to any more. Each is recorded with the node whose disk has it, and removed by that node.
extension Store.Files {
    /// The name of this node in the rows of files.
    private var disk: String { node ?? "" }

    /// Records a file for removal, so that a crash before the removal leaves no orphan.
    ///
    /// A file of a removed node needs no record: if the node returns, it removes unreferenced files at its start.
    ///
    /// - Parameter owner: The node whose disk has the file; `nil` for this node.
    func discard(_ file: String, on owner: String? = nil, _ transaction: Transaction) throws {
        let owner = owner ?? disk
        guard try owner == disk || store.nodes.livingOthers(transaction.db).contains(owner) else { return }
        try transaction.db.execute(
            "INSERT INTO useless_file (node, path) VALUES (?1, ?2) ON CONFLICT DO NOTHING", owner, file)
        if owner == disk { transaction.aftermath.filesToRemove.append(file) }
    }

    /// Records the files that a task left on the disk of another node, which does not resume it.
    package func discard(of task: TaskID, _ progress: TaskProgress, at now: Timestamp) async throws {
        guard let owner = progress.node, owner != node else { return }
        _ = try await transact(at: now) { transaction in
            let files = [progress.adoptedFile, Store.Tasks.partialFile(task)].compactMap { $0 }
            for file in files where try !store.tasks.isKept(file, but: task, transaction.db) {
                try self.discard(file, on: owner, transaction)
            }
        }
    }

    /// Files of this node that are recorded for removal, up to `limit`, in the order of their paths.
    package func discarded(after path: String = "", limit: Int) async throws -> [String] {
        try await database.read { [disk] db in
            let own = try db.all(
                "SELECT path FROM useless_file WHERE node = ?1 AND path > ?2 ORDER BY path LIMIT ?3", disk, path, limit
            ) { $0.text(0) }
            guard !disk.isEmpty else { return own }
            let unnamed = try db.all(
                "SELECT path FROM useless_file WHERE node = '' AND path > ?1 ORDER BY path LIMIT ?2", path, limit
            ) { $0.text(0) }
            return Array(Set(own + unnamed).sorted().prefix(limit))
        }
    }

    /// Deletes the records of removed files of this node, 500 in each commit.
    ///
    /// - Returns: The number of commits.
    @discardableResult
    package func forgetDiscarded(_ paths: [String]) async throws -> Int {
        var rest = paths[...]
        var commits = 0
        while !rest.isEmpty {
            let some = rest.prefix(500)
            rest = rest.dropFirst(500)
            try await database.write { [disk] db in
                for path in some {
                    try db.execute("DELETE FROM useless_file WHERE node IN (?1, '') AND path = ?2", disk, path)
                }
            }
            commits += 1
        }
        return commits
    }

    /// Deletes the records of nodes that are gone.
    func forgetFiles(but nodes: Set<String>, _ db: Connection) throws {
        let owners = try db.all("SELECT DISTINCT node FROM useless_file WHERE node <> ''") { $0.text(0) }
        for owner in owners where !nodes.contains(owner) {
            try db.execute("DELETE FROM useless_file WHERE node = ?1", owner)
        }
    }

    /// The need of a file below this node's data folder.
    package func need(of path: String) async throws -> FileNeed {
        try await database.read { db in
            let isNamed = try db.exists(
                """
                SELECT 1 WHERE EXISTS (SELECT 1 FROM content WHERE file = ?1) \
                OR EXISTS (SELECT 1 FROM body WHERE file = ?1) OR EXISTS (SELECT 1 FROM cached WHERE file = ?1) \
                OR EXISTS (SELECT 1 FROM set_file WHERE file = ?1) \
                OR EXISTS (SELECT 1 FROM resume_data WHERE file = ?1 AND (node IS NULL OR node = ?2))
                """, path, self.node)
            if isNamed { return .needed }
            let adopter = try db.first("SELECT task FROM live WHERE adopts = ?1", path) { TaskID($0.integer(0)) }
            if let need = try adopter.map({ try self.needOfFiles(of: $0, db) }), need != .useless { return need }
            let isContent = path.hasPrefix("contents/")
            let name = path.split(separator: "/").last?.prefix { $0 != "." }
            guard isContent || path.hasPrefix("partial/"), let task = name.flatMap({ Int64($0) }) else {
                return .useless
            }
            let need = try self.needOfFiles(of: TaskID(task), db)
            return isContent && need == .needed ? .undecided : need
        }
    }

    /// The need of an unfinished task for its files at this node.
    private func needOfFiles(of task: TaskID, _ db: Connection) throws -> FileNeed {
        try db.first("SELECT node, progress_document FROM live WHERE task = ?1", task.rawValue) { row in
            guard let node = self.node else { return .needed }
            let progress = try row.blobOrNil("progress_document").map {
                try self.documents.decode(TaskProgress.self, $0)
            }
            switch (row.textOrNil("node"), progress?.node) {
            case (node, _), (nil, node): return .needed
            case (nil, nil), (_, node): return .undecided
            default: return .useless
            }
        } ?? .useless
    }
}

/// The need of a file on a node's disk.
package enum FileNeed: Sendable {
    case useless
    /// The file's task has no node yet and may start here at any moment, or another node has claimed it and has not
    /// stored any progress yet. Or the file is a content, which the next commit of its unfinished task may name.
    case undecided
    /// A row names the file, or it is a partial file whose task is in flight here or was last here.
    case needed
}
