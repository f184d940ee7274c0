import CPostgreSQL

/// libpq, loaded the first time that a server is asked for.
enum LibPQ {
    /// Unchecked: it is written once, before anybody has it.
    struct Functions: @unchecked Sendable {
        let pointer: UnsafePointer<libpq>
    }

    private static let loaded: Result<Functions, SQLError> = {
        var reason: UnsafePointer<CChar>?
        if let pointer = libpq_load(&reason) { return .success(Functions(pointer: pointer)) }
        let detail = reason.map { String(cString: $0) } ?? ""
        return .failure(SQLError(.unreachable, "libpq cannot be loaded (install libpq5): \(detail)"))
    }()

    /// There to stay.
    static func functions() throws(SQLError) -> UnsafePointer<libpq> { try loaded.get().pointer }

    /// What is wrong with a connection string; nil for one that can be used.
    static func fault(in connection: String) throws(SQLError) -> String? {
        let pq = try functions().pointee
        var message: UnsafeMutablePointer<CChar>?
        let options = pq.PQconninfoParse(connection, &message)
        defer {
            pq.PQconninfoFree(options)
            pq.PQfreemem(message)
        }
        return options == nil ? message.map { String(cString: $0) } ?? "no memory" : nil
    }
}
