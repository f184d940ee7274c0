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
final class KnownVersion: @unchecked Sendable {
    /// The version's name, or its identifier if the commit of its source becomes its name.
    private(set) var name: String
    let order: SetVersionOrder
    /// The files that the client sends with the order.
    let sent: [SetFile]
    /// The files of the version with each of the names that it may get.
    private let files: [String: [String: Resource]]
    /// Whether the program has confirmed it.
    var isConfirmed = false
    var wasPublished = false
    var isCancelled = false

    /// - Parameter list: The source that lists the files, if the client does not send them.
    init(_ name: String, _ files: [String: Resource], list: SetSource? = nil) {
        var order = SetVersionOrder()
        (order.name, order.source) = (name, list)
        (self.name, self.order, self.files) = (name, order, [name: files])
        sent =
            list != nil
            ? []
            : files.sorted { $0.key < $1.key }.map {
                SetFile($0.key, TransferRequest(url: $0.value.url, method: "GET"), Listing.drawnDigest(for: $0.value))
            }
    }

    /// A version of the present commit of a hub's branch.
    init(_ placeholder: String, of hub: Hub) {
        var order = SetVersionOrder()
        order.source = hub.source
        (name, self.order, files, sent) = (placeholder, order, hub.commits, [])
    }

    var isOfHub: Bool { order.name == nil }

    func hasBecome(_ identifier: String) { if isOfHub { name = identifier } }

    /// The files under a name that readers see.
    func files(as name: String) -> [String: Resource]? { files[name] }
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
            if Dice.extras.chance(300) { change.layout = .hfCache }
            if !plan.isCalm, world.isTroubled, Dice.extras.chance(200) {
                isObstructed = world.obstruct(prefix) || isObstructed
            }
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
        let version = makeVersion()
        versions.append(version)
        try await create(version)
    }

    /// Whether the set has the layout of the cache of huggingface_hub.
    private var isCache: Bool { self.set?.configuration.layout == .hfCache }

    private func makeVersion() -> KnownVersion {
        let name = "v\(versions.count + 1)"
        let choice = Dice.extras.below(5)
        if choice == 0 || isCache {
            let hub = hub ?? Hub(number, world.origins)
            self.hub = hub
            return KnownVersion(name, of: hub)
        }
        var files: [String: Resource] = [:]
        for index in 0..<(1 + stores.below(6)) { files["f\(index)"] = world.origins.shareResource() }
        let list: SetSource? =
            switch choice {
            case 1: Listing.manifest(files, world.origins)
            case 2: Listing.checksums(files, world.origins)
            default: nil
            }
        return KnownVersion(name, files, list: list)
    }

    /// Creates a version. The call may be repeated.
    private func create(_ version: KnownVersion) async throws {
        guard let set, !version.isConfirmed else { return }
        let (name, order, files) = (version.name, version.order, version.sent)
        do {
            let received = try await attempt("create version \(name)") { service, session in
                guard let session else { throw DomainError.notFound }
                let draft = try await service.beginVersion(order, of: set, in: session)
                if !files.isEmpty { try await service.add(files, to: draft) }
                return try await service.finish(draft, fingerprint: Array(name.utf8), recording: nil).version
            }
            guard let received else { return }
            let isListed = version.order.source != nil
            guard version.isOfHub || received.name == name, isListed || received.files.total == Int64(files.count)
            else {
                throw Violation("The version \(name) was created with \(received.files.total) files: \(received.name).")
            }
            version.isConfirmed = true
            version.hasBecome(received.publicId)
            if plan.has(.commands), Dice.extras.chance(200) { world.begin { try await self.ambush(version) } }
            trace.met("version created")
        } catch DomainError.sessionInvalidated {
            version.isCancelled = true
        }
    }

    /// Waits until a version is in a state, and then cancels it, or retries a failed one.
    private func ambush(_ version: KnownVersion) async throws {
        let state = Dice.extras.pick([SetVersionState.expanding, .verifying, .verifying, .publishing, .failed, .failed])
        do {
            while world.isTroubled, let found = try await record(of: version),
                found.state.isInFlight || found.state == state
            {
                if found.state == state {
                    trace.met("ambush \(state.rawValue)")
                    guard state == .failed else { return try await cancel(version, found) }
                    await world.simulator.pause(Dice.extras.between(1, 10_000))
                    return try await retry(version, found)
                }
                await world.simulator.pause(Dice.extras.between(1, 20))
            }
        } catch is DomainError {} catch ServiceError.destinationUnavailable where plan.has(.objects) {}
    }

    private func cancel(_ version: KnownVersion, _ found: SetVersionRecord) async throws {
        version.isCancelled = true
        _ = try await attempt("cancel version \(version.name)") { service, _ in
            try await service.cancelVersion(found.id, ifRevision: nil).state
        }
    }

    private func retry(_ version: KnownVersion, _ found: SetVersionRecord) async throws {
        _ = try await attempt("retry version \(version.name)") { service, _ in
            try await service.retryVersion(found.id, ifRevision: nil).state
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
        let name = found.name
        guard let expected = version.files(as: name) else { throw Violation("The version \(name) was never created.") }
        let path = expected.keys.sorted().randomElement(using: stores) ?? ""
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
        guard files.map(\.path).sorted() == expected.keys.sorted() else {
            throw Violation("The version \(name) has the files \(files.map(\.path)).")
        }
        for file in files { try check(file.digest.value, file.path, of: version, as: name) }
        guard Digest.of(bytes).hexadecimal == file.digest.value else {
            throw Violation("The bytes of \(name)/\(path) are not those of its digest.")
        }
        trace.met("version compared")
    }

    private func check(_ digest: String, _ path: String, of version: KnownVersion, as name: String) throws {
        guard let resource = version.files(as: name)?[path], let bytes = [UInt8](hexadecimal: digest) else {
            throw Violation("The version \(name) has another file \(path).")
        }
        // A cut of a body without a length is not detectable, and 204 has no body.
        let isEmpty = bytes == Digest.of([]) && plan.has(.statuses)
        guard resource.mayBeShort || isEmpty || resource.has(digest: bytes, variant: 0) else {
            throw Violation("\(name)/\(path) is no version of its resource.")
        }
    }

    /// The current version is a whole one.
    private func readSet() async throws {
        guard let set else { return }
        let found = try await attempt("read set") { [setName] service, _ in
            try await service.set(setName, of: set.app)
        }
        guard let current = found?.current else { return }
        let version = try version(named: current.name)
        if !version.isOfHub { version.wasPublished = true }
        try await compare(version, current)
    }

    /// The version that has, or may have, a name. Of the versions of a hub, any.
    private func version(named name: String) throws -> KnownVersion {
        guard let version = versions.first(where: { $0.files(as: name) != nil }) else {
            throw Violation("The current version \(name) was never created.")
        }
        return version
    }

    private func command(_ version: KnownVersion) async throws {
        guard let set, let found = try await record(of: version) else { return }
        let choice = stores.below(3)
        do {
            switch choice {
            case 0: try await cancel(version, found)
            case 1: try await retry(version, found)
            default:
                _ = try await attempt("switch to \(version.name)") { service, _ in
                    try await service.switchSet(set.id, to: found.id, ifRevision: nil).revision
                }
            }
            trace.met("set command \(choice)")
        } catch DomainError.setVersionState {
        } catch DomainError.setVersionExists where version.isOfHub {
        } catch DomainError.sessionInvalidated {
        } catch ServiceError.destinationUnavailable where plan.has(.storeErrors) || plan.has(.objects) {}
    }

    /// Follows the pointer in the bucket, like a reader that does not know the program.
    private func readBucket() async throws {
        guard let pointer = world.objects.ofApps("\(prefix)/current.json") else { return }
        guard let name = try? JSON.parse(pointer.bytes)["version"]?.stringValue else {
            throw Violation("The pointer in the bucket is \(String(decoding: pointer.bytes, as: UTF8.self)).")
        }
        let version = try version(named: name)
        for path in (version.files(as: name) ?? [:]).keys.sorted() {
            await world.simulator.pause(stores.between(0, 200))
            guard let object = world.objects.ofApps("\(prefix)/versions/\(name)/\(path)") else {
                throw Violation("The current version \(name) has no object \(path).")
            }
            try check(Digest.of(object.bytes).hexadecimal, path, of: version, as: name)
        }
        trace.met("version compared in the bucket")
    }

    /// The name of the version that a reader of the disk is led to.
    private func shownVersion() throws -> String? {
        guard let text = isCache ? world.bytes(of: "\(prefix)/\(Hub.folder)/refs/main") : shownLink() else {
            if hasBeenShown { throw Violation("\(setName) has no current version on the disk any more.") }
            return nil
        }
        hasBeenShown = true
        return String(decoding: text, as: UTF8.self).split(separator: "/").last.map(String.init)
    }

    private func shownLink() -> [UInt8]? {
        var text = [UInt8](repeating: 0, count: 256)
        let count = readlink("\(world.folder(of: prefix))/current", &text, text.count)
        return count > 0 ? Array(text[..<count]) : nil
    }

    /// Follows the link on the disk, like a reader that does not know the program.
    private func readFolder() async throws {
        guard let name = try shownVersion() else { return }
        let version = try version(named: name)
        let folder = isCache ? "\(Hub.folder)/snapshots" : ".versions"
        for path in (version.files(as: name) ?? [:]).keys.sorted() {
            await world.simulator.pause(stores.between(0, 200))
            guard let bytes = world.bytes(of: "\(prefix)/\(folder)/\(name)/\(path)") else {
                throw Violation("The version \(name), which was current, has no file \(path) on the disk.")
            }
            try check(Digest.of(bytes).hexadecimal, path, of: version, as: name)
        }
        trace.met(isCache ? "snapshot compared in a cache" : "version compared on the disk")
    }

    // MARK: The end

    /// Waits until each version has ended, and deletes the set.
    func finishSet() async throws {
        // A version whose destination cannot be written fails after 24 attempts at most.
        let deadline = world.simulator.now + (isObstructed ? 12_000_000 : 4_000_000)
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
            // A version of a hub's commit is superseded if another one has the commit.
            if plan.isCalm, version === versions.last, !version.wasPublished, !version.isOfHub {
                throw Violation("The version \(version.name) met no fault, and was not published.")
            }
        }
        if isObstructed { world.removeObstacle(prefix) }
        try await readBucket()
        try await readFolder()
        if let shown = try shownVersion(), let set {
            let current = try await insist("read set") { [setName] service, _ in
                try await service.set(setName, of: set.app).current?.name
            }
            guard current == shown else {
                throw Violation("\(current ?? "no version") is current, and the disk shows \(shown).")
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
