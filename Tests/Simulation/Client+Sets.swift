import Base
import CSimulation
import Core
import Formats
import Glibc
import SQL
import Service
import Store
import Transfers

/// A version that a client has asked for.
final class KnownVersion {
    let name: String
    let files: [String: Resource]
    /// Whether the program has confirmed it.
    var isConfirmed = false
    var wasPublished = false
    var isCancelled = false

    init(_ name: String, _ files: [String: Resource]) {
        self.name = name
        self.files = files
    }
}

/// A client's set of files, whose versions readers see whole.
extension Client {
    var setName: String { "set\(number)" }
    private var prefix: String { "sets/\(number)" }
    private var stores: Dice { .stores }

    func actOnSet() async throws {
        switch stores.below(6) {
        case 0, 1: if !isInvalidated, versions.count < 5 { try await publish() }
        case 2: if let version = versions.randomElement(using: stores) { try await look(at: version) }
        case 3: try await readSet()
        case 4:
            if plan.has(.commands), let version = versions.randomElement(using: stores) { try await command(version) }
        default:
            try await readBucket()
            try await readFolder()
        }
    }

    private func openSet() async throws -> SetRecord? {
        if let known = set { return known }
        var change = SetChange()
        if plan.has(.objects), number % 2 == 0 {
            var destination = SetDestination()
            (destination.bucket, destination.prefix) = (ObjectHost.name, prefix)
            change.destination = .some(destination)
        }
        if number % 2 == 1, !plan.has(.nodes), Dice.extras.chance(600) {
            var destination = SetDestination()
            (destination.root, destination.path) = ("root", prefix)
            change.destination = .some(destination)
        }
        let (name, app, given) = (setName, world.app, change)
        mayHaveSet = true
        set = try await attempt("put set") { service, _ in
            try await service.putSet(name, of: app, given, ifRevision: nil).set
        }
        return set
    }

    private func publish() async throws {
        guard try await openSet() != nil else { return }
        var files: [String: Resource] = [:]
        for index in 0..<(1 + stores.below(6)) { files["f\(index)"] = world.origins.shareResource() }
        let version = KnownVersion("v\(versions.count + 1)", files)
        versions.append(version)
        try await create(version)
    }

    /// Creates a version. The call may be repeated.
    private func create(_ version: KnownVersion) async throws {
        guard let set, !version.isConfirmed else { return }
        let files = version.files.sorted { $0.key < $1.key }.map {
            SetFile($0.key, TransferRequest(url: $0.value.url, method: "GET"))
        }
        let name = version.name
        do {
            let received = try await attempt("create version \(name)") { service, session in
                guard let session else { throw DomainError.notFound }
                var order = SetVersionOrder()
                order.name = name
                let draft = try await service.beginVersion(order, of: set, in: session)
                try await service.add(files, to: draft)
                return try await service.finish(draft, fingerprint: Array(name.utf8), recording: nil).version
            }
            guard let received else { return }
            guard received.name == name, received.files.total == Int64(files.count) else {
                throw Violation("The version \(name) was created with \(received.files.total) files: \(received.name).")
            }
            version.isConfirmed = true
            trace.met("version created")
        } catch DomainError.sessionInvalidated {
            version.isCancelled = true
        }
    }

    private func record(of version: KnownVersion) async throws -> SetVersionRecord? {
        guard let set, version.isConfirmed else { return nil }
        let name = version.name
        do {
            return try await attempt("version \(name)") { service, _ in try await service.version(name, of: set.id) }
        } catch DomainError.notFound where plan.has(.clockJumps) {
            // An ended version is removed after a day, and a replaced one after its grace.
            return nil
        }
    }

    private func look(at version: KnownVersion) async throws {
        guard let found = try await record(of: version) else { return }
        trace.met("version \(found.state.rawValue)")
        if version.wasPublished, found.state != .published {
            throw Violation("The version \(version.name) was published, and is \(found.state).")
        }
        guard found.state == .published else { return }
        version.wasPublished = true
        try await compare(version, found)
    }

    /// Reads the manifest and a file of a published version.
    private func compare(_ version: KnownVersion, _ found: SetVersionRecord) async throws {
        let name = version.name
        let path = version.files.keys.sorted().randomElement(using: stores) ?? ""
        let read: (files: [SetManifestFile], file: SetManifestFile, bytes: [UInt8])?
        do {
            read = try await attempt("read version \(name)") { service, _ in
                let files = try await service.manifestFiles(of: found.id, after: "", limit: 100)
                let (file, source, hold) = try await service.file(path, of: found)
                defer { withExtendedLifetime(hold) {} }
                return (files, file, try await Self.bytes(of: source, length: file.length, service))
            }
        } catch DomainError.notFound where plan.has(.clockJumps) {
            return
        }
        guard let (files, file, bytes) = read else { return }
        guard files.map(\.path).sorted() == version.files.keys.sorted() else {
            throw Violation("The version \(name) has the files \(files.map(\.path)).")
        }
        for file in files { try check(file.digest.value, file.path, of: version) }
        guard Digest.of(bytes).hexadecimal == file.digest.value else {
            throw Violation("The bytes of \(name)/\(path) are not those of its digest.")
        }
        trace.met("version compared")
    }

    private func check(_ digest: String, _ path: String, of version: KnownVersion) throws {
        guard let resource = version.files[path], let bytes = [UInt8](hexadecimal: digest) else {
            throw Violation("The version \(version.name) has another file \(path).")
        }
        // A cut of a body without a length is not detectable, and 204 has no body.
        let isEmpty = bytes == Digest.of([]) && plan.has(.statuses)
        guard resource.mayBeShort || isEmpty || resource.has(digest: bytes, variant: 0) else {
            throw Violation("\(version.name)/\(path) is no version of its resource.")
        }
    }

    /// The current version is a whole one.
    private func readSet() async throws {
        guard let set else { return }
        let found = try await attempt("read set") { [setName] service, _ in
            try await service.set(setName, of: set.app)
        }
        guard let current = found?.current else { return }
        guard let version = versions.first(where: { $0.name == current.name }) else {
            throw Violation("The current version \(current.name) was never created.")
        }
        version.wasPublished = true
        try await compare(version, current)
    }

    private func command(_ version: KnownVersion) async throws {
        guard let set, let found = try await record(of: version) else { return }
        let choice = stores.below(3)
        do {
            switch choice {
            case 0:
                version.isCancelled = true
                _ = try await attempt("cancel version \(version.name)") { service, _ in
                    try await service.cancelVersion(found.id, ifRevision: nil).state
                }
            case 1:
                _ = try await attempt("retry version \(version.name)") { service, _ in
                    try await service.retryVersion(found.id, ifRevision: nil).state
                }
            default:
                _ = try await attempt("switch to \(version.name)") { service, _ in
                    try await service.switchSet(set.id, to: found.id, ifRevision: nil).revision
                }
            }
            trace.met("set command \(choice)")
        } catch DomainError.setVersionState {
        } catch DomainError.sessionInvalidated {
        } catch ServiceError.destinationUnavailable where plan.has(.storeErrors) || plan.has(.objects) {}
    }

    /// Follows the pointer in the bucket, like a reader that does not know the program.
    private func readBucket() async throws {
        guard let pointer = world.objects.ofApps("\(prefix)/current.json") else { return }
        guard let name = try? JSON.parse(pointer.bytes)["version"]?.stringValue,
            let version = versions.first(where: { $0.name == name })
        else { throw Violation("The pointer in the bucket is \(String(decoding: pointer.bytes, as: UTF8.self)).") }
        for path in version.files.keys.sorted() {
            await world.simulator.pause(stores.between(0, 200))
            guard let object = world.objects.ofApps("\(prefix)/versions/\(name)/\(path)") else {
                throw Violation("The current version \(name) has no object \(path).")
            }
            try check(Digest.of(object.bytes).hexadecimal, path, of: version)
        }
        trace.met("version compared in the bucket")
    }

    /// The version that a reader of the disk is led to.
    private func shownVersion() throws -> KnownVersion? {
        var text = [UInt8](repeating: 0, count: 256)
        let count = readlink("\(world.folder(of: prefix))/current", &text, text.count)
        guard count > 0 else {
            if hasBeenShown { throw Violation("\(setName) has no current version on the disk any more.") }
            return nil
        }
        let name = String(decoding: text[..<count], as: UTF8.self).split(separator: "/").last.map(String.init)
        guard let version = versions.first(where: { $0.name == name }) else {
            throw Violation("\(setName) leads to \(name ?? "nothing") on the disk.")
        }
        hasBeenShown = true
        return version
    }

    /// Follows the link on the disk, like a reader that does not know the program.
    private func readFolder() async throws {
        guard let version = try shownVersion() else { return }
        for path in version.files.keys.sorted() {
            await world.simulator.pause(stores.between(0, 200))
            guard let bytes = world.bytes(of: "\(prefix)/.versions/\(version.name)/\(path)") else {
                throw Violation("The version \(version.name), which was current, has no file \(path) on the disk.")
            }
            try check(Digest.of(bytes).hexadecimal, path, of: version)
        }
        trace.met("version compared on the disk")
    }

    // MARK: The end

    /// Waits until each version has ended, and deletes the set.
    func finishSet() async throws {
        let deadline = world.simulator.now + 4_000_000
        for version in versions where !version.isConfirmed && !isInvalidated {
            while !version.isConfirmed, !version.isCancelled { try await create(version) }
        }
        while let version = try await firstInFlight() {
            guard world.simulator.now < deadline else {
                throw Violation("Liveness: the version \(version.name) is \(version.state).")
            }
            try await readEvents()
            try await answerQuestions(kindly: true)
            await world.simulator.pause(5000)
        }
        for version in versions {
            try await look(at: version)
            if plan.isCalm, version === versions.last, !version.wasPublished {
                throw Violation("The version \(version.name) met no fault, and was not published.")
            }
        }
        try await readBucket()
        try await readFolder()
        if let shown = try shownVersion(), let set {
            let current = try await insist("read set") { [setName] service, _ in
                try await service.set(setName, of: set.app).current?.name
            }
            guard current == shown.name else {
                throw Violation("\(current ?? "no version") is current, and the disk shows \(shown.name).")
            }
        }
        // The response to its creation may have been lost.
        while mayHaveSet, set == nil { _ = try await openSet() }
        guard let set else { return }
        do {
            _ = try await insist("delete set") { service, _ in
                try await service.deleteSet(set.id, keepsFiles: false, ifRevision: nil)
            }
        } catch DomainError.notFound {}
    }

    private func firstInFlight() async throws -> SetVersionRecord? {
        for version in versions where version.isConfirmed {
            guard let found = try await record(of: version) else { continue }
            if found.state.isInFlight { return found }
        }
        return nil
    }
}
