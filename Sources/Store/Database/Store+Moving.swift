import SQL

extension Store {
    /// Writes all that a store has into a file that does not exist, while the store is used or not.
    package static func export(_ place: Place, to path: String) throws {
        switch place {
        case .file(let file): try Database.export(file, to: path)
        case .server(let server, _, _): try Database.export(server, to: path, migrations: Schema.migrations)
        }
    }

    /// Fills an empty store that no service uses from a file that ``export(_:to:)`` wrote.
    package static func load(_ path: String, into place: Place) throws {
        switch place {
        case .file(let file): try Database.load(path, into: file)
        case .server(let server, _, _): try Database.load(path, into: server, migrations: Schema.migrations)
        }
    }
}
