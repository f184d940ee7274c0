import CPostgreSQL

/// libpq, loaded at the first use.
enum LibPQ {
    /// Unchecked: the pointer is written once, before it is shared.
    struct Functions: @unchecked Sendable {
        let pointer: UnsafePointer<libpq>
    }

    private static let loaded: Result<Functions, SQLError> = {
        var reason: UnsafePointer<CChar>?
        if let pointer = libpq_load(&reason) { return .success(Functions(pointer: pointer)) }
        let detail = reason.map { String(cString: $0) } ?? ""
        return .failure(SQLError(.unreachable, "libpq cannot be loaded (install libpq5): \(detail)"))
    }()

    /// The library is never unloaded.
    static func functions() throws(SQLError) -> UnsafePointer<libpq> { try loaded.get().pointer }

    /// The error in a connection string; `nil` if the string is valid.
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
