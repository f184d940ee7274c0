import SQL

extension Store {
    /// Exports the whole store into a file that does not exist yet. A service may be using the store.
    package static func export(_ location: Location, to path: String) throws {
        switch location {
        case .file(let file): try Database.export(file, to: path)
        case .server(let server, _, _): try Database.export(server, to: path, migrations: Schema.migrations)
        }
    }

    /// Fills an empty, unused store from a file that ``export(_:to:)`` wrote.
    package static func load(_ path: String, into location: Location) throws {
        switch location {
        case .file(let file): try Database.load(path, into: file)
        case .server(let server, _, _):
            try Database.load(path, into: server, migrations: Schema.migrations, holder: NodeRow.holder)
        }
    }
}
