import CSQLite
import Glibc

extension Database {
    /// Writes a copy of a database, of one snapshot and without free pages. The database may be in use, also by another
    /// process.
    ///
    /// The copy appears under its name when it is complete and durable, readable by its owner alone.
    ///
    /// - Parameter path: A file that does not exist.
    package static func copy(of source: String, to path: String) throws(SQLError) {
        try write(path) { partial throws(SQLError) in
            try SQLiteConnection(path: source, role: .reader).execute("VACUUM INTO ?1", partial)
        }
    }

    /// Like ``copy(of:to:)``, with a digest at the end of the file.
    package static func export(_ source: String, to path: String) throws(SQLError) {
        try write(path) { partial throws(SQLError) in
            try SQLiteConnection(path: source, role: .reader).execute("VACUUM INTO ?1", partial)
            try ExportSeal.append(to: partial)
        }
    }

    /// Creates a database from an export.
    ///
    /// - Throws: `SQLITE_CORRUPT` if the export does not match its digest.
    package static func load(_ path: String, into file: String) throws(SQLError) {
        try ExportSeal.check(path)
        try copy(of: path, to: file)
    }

    /// Writes a file under another name, and renames it when it is complete and durable.
    static func write(_ path: String, _ body: (String) throws(SQLError) -> Void) throws(SQLError) {
        guard access(path, F_OK) != 0 else { throw failure("\(path): it exists already", 0) }
        let partial = path + ".partial"
        unlink(partial)
        let file = Glibc.open(partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failure(partial) }
        defer { Glibc.close(file) }
        do throws(SQLError) {
            try body(partial)
            guard fsync(file) == 0, rename(partial, path) == 0 else { throw failure(path) }
            try syncFolder(of: path)
        } catch {
            unlink(partial)
            throw error
        }
    }

    private static func syncFolder(of path: String) throws(SQLError) {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(folder) }
        defer { Glibc.close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure(folder) }
    }

    private static func failure(_ subject: String, _ code: Int32 = errno) -> SQLError {
        let reason = code == 0 ? "" : ": \(String(cString: strerror(code)))"
        return SQLError(code: code == ENOSPC ? SQLITE_FULL : SQLITE_CANTOPEN, message: subject + reason)
    }
}
