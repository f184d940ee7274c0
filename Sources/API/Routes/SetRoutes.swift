import Core
import Formats
import HTTPServer
import Launches
import Service
import Wire
import WireMapping

extension APIServer {
    /// Sets, their versions, and what readers see of them.
    var setRoutes: [Route] {
        let set = "/v1/sets/{name}"
        let version = set + "/versions/{version}"
        return [
            route("GET", "/v1/sets", .read, query: Call.listing) { try await $0.listSets() },
            route("GET", set, .read) { $0.show(try await $0.set()) },
            route("PUT", set, .write, body: .optionalJSON) { try await $0.putSet() },
            route("DELETE", set, .write, query: ["keepFiles"], body: .empty) { try await $0.deleteSet() },
            route("POST", set + "/current", .write, body: .json) { try await $0.switchSet() },
            route("GET", set + "/manifest", .read) { try await $0.currentManifest() },
            route("GET", set + "/files/{path...}", .read, produces: [MediaTypes.any]) { try await $0.currentFile() },
            route("GET", set + "/versions", .read, query: Call.listing) { try await $0.listVersions() },
            route("POST", set + "/versions", .write, body: .batchOrLines) { try await $0.createVersion() },
            route("GET", version, .read) { try await $0.readVersion() },
            route("POST", version + "/retry", .write, body: .empty) {
                try await $0.command($0.service.retryVersion, status: 200)
            },
            route("POST", version + "/cancel", .write, body: .empty) {
                try await $0.command($0.service.cancelVersion, status: 202)
            },
            route("GET", version + "/manifest", .read) { try await $0.versionManifest() },
            route("GET", version + "/files/{path...}", .read, produces: [MediaTypes.any]) {
                try await $0.versionFile()
            },
        ]
    }
}

extension Call {
    /// The set in the path.
    func set() async throws -> SetRecord {
        guard let set = try await existingSet() else {
            throw Problem(.notFound, "There is no set \"\(parameter("name"))\".")
        }
        return set
    }

    private func existingSet() async throws -> SetRecord? {
        do {
            return try await service.set(parameter("name"), of: app)
        } catch DomainError.notFound {
            return nil
        }
    }

    func show(_ set: SetRecord, status: Int = 200, location: String? = nil) -> HTTPResponse {
        resource(
            FileSet(set, server.launches.urls), version: Version(set), status: status, location: location)
    }

    fileprivate func listSets() async throws -> HTTPResponse {
        let app = try app
        let span = try span()
        return try await page(
            fetch: { try await service.sets(of: app, span, after: $0, limit: $1) }, position: \.id.rawValue,
            write: { FileSet($0, server.launches.urls) })
    }

    fileprivate func putSet() async throws -> HTTPResponse {
        let name = parameter("name")
        if let detail = TextRule.identifier.violation(in: name) { throw Problem(.invalidValue, detail) }
        let change = SetChange(try readIfPresent(FileSetPut.self))
        let app = try app
        let revision = try expectedRevision(of: try await existingSet().map { Version($0) })
        let (set, isNew) = try await service.putSet(name, of: app, change, ifRevision: revision)
        return isNew ? show(set, status: 201, location: "/v1/sets/\(name)") : show(set)
    }

    fileprivate func deleteSet() async throws -> HTTPResponse {
        let keepsFiles = try queryWord("keepFiles", [("1", true)]) ?? false
        let set = try await set()
        try await service.deleteSet(
            set.id, keepsFiles: keepsFiles, ifRevision: try expectedRevision(of: Version(set)))
        return .nothing
    }

    fileprivate func switchSet() async throws -> HTTPResponse {
        let name = try read(SetSwitch.self).version
        let set = try await set()
        let revision = try expectedRevision(of: Version(set))
        let version = try await version(name, of: set)
        return show(try await service.switchSet(set.id, to: version.id, ifRevision: revision))
    }

    /// A version that the body names.
    private func version(_ name: String, of set: SetRecord) async throws -> SetVersionRecord {
        do {
            return try await service.version(name, of: set.id)
        } catch DomainError.notFound {
            throw Problem(.notFound, "There is no version \"\(name)\" of set \"\(set.name)\".")
        }
    }
}

extension SetChange {
    fileprivate init(_ put: FileSetPut) {
        self.init()
        destination = put.destination.update.map { $0.map { Core.SetDestination($0) } }
        layout = put.layout.flatMap { Core.SetLayout($0) }
        keep = put.keep
        grace = put.grace
        cachePolicy = put.cachePolicy.flatMap { Core.CachePolicy($0) }
    }
}
