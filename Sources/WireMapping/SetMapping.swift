package import Core
package import Wire

extension FileSet {
    package init(_ record: SetRecord, _ urls: PublicURLs) {
        self.init()
        let configuration = record.configuration
        name = record.name
        destination = configuration.destination.map(Wire.SetDestination.init)
        layout = Wire.SetLayout(configuration.layout)
        keep = configuration.keep
        grace = configuration.grace
        cachePolicy = Wire.CachePolicy(configuration.cachePolicy)
        current = record.current.map { PublishedVersion($0, of: record.name, urls) }
        versions = record.kept.map { PublishedVersion($0, of: record.name, urls) }
        createdAt = record.createdAt.rfc3339
        revision = record.revision
    }
}

extension PublishedVersion {
    fileprivate init(_ record: SetVersionRecord, of set: String, _ urls: PublicURLs) {
        self.init()
        version = record.name
        versionId = record.publicId
        files = record.files.total
        bytes = record.bytes.total
        manifestDigest = record.manifestDigest
        manifestURL = urls.manifest(of: record.publicId, in: set)
        publishedAt = (record.publishedAt ?? record.createdAt).rfc3339
        replacedAt = record.replacedAt?.rfc3339
    }
}

extension SetVersion {
    /// - Parameter set: The name of the set.
    package init(_ record: SetVersionRecord, of set: String, _ urls: PublicURLs) {
        self.init()
        version = record.name
        versionId = record.publicId
        name = set
        sessionIdentifier = record.sessionIdentifier
        state = Wire.SetVersionState(record.state)
        source = record.source.map(Wire.SetSource.init)
        commit = record.commit
        (files.total, files.fetched, files.reused) = (record.files.total, record.files.fetched, record.files.reused)
        files.failed = record.failedFiles
        (bytes.total, bytes.fetched, bytes.reused) = (record.bytes.total, record.bytes.fetched, record.bytes.reused)
        failures = record.failures.map(Wire.SetFailure.init)
        manifestDigest = record.manifestDigest
        if record.state == .published { manifestURL = urls.manifest(of: record.publicId, in: set) }
        metadata = StringMap(sorted: record.metadata)
        createdAt = record.createdAt.rfc3339
        publishedAt = record.publishedAt?.rfc3339
        replacedAt = record.replacedAt?.rfc3339
        endedAt = record.endedAt?.rfc3339
        revision = record.revision
    }
}

extension Wire.SetFailure {
    init(_ core: Core.SetFailure) {
        self.init()
        path = core.path
        taskIdentifier = core.task
        detail = core.detail
    }
}

extension Wire.SetDestination {
    init(_ core: Core.SetDestination) {
        self.init()
        (root, path, bucket, prefix) = (core.root, core.path, core.bucket, core.prefix)
    }
}

extension Core.SetDestination {
    package init(_ wire: Wire.SetDestination) {
        self.init()
        (root, path, bucket, prefix) = (wire.root, wire.path, wire.bucket, wire.prefix)
    }
}

// MARK: - Versions that an app creates

extension Core.SetSource {
    package init(_ wire: Wire.SetSource) {
        self.init()
        kind = Kind(wire.kind) ?? kind
        repository = wire.repository
        type = wire.type.flatMap { RepositoryType($0) } ?? type
        revision = wire.revision ?? revision
        (allow, ignore) = (wire.allow, wire.ignore)
        (endpoint, url, base) = (wire.endpoint, wire.url, wire.base)
        algorithm = wire.algorithm.flatMap { SetDigestAlgorithm($0) }
    }
}

extension Wire.SetSource {
    /// With the defaults of a repository.
    init(_ core: Core.SetSource) {
        self.init()
        kind = Kind(core.kind)
        repository = core.repository
        if core.kind == .huggingface { (type, revision) = (RepositoryType(core.type), core.revision) }
        (allow, ignore) = (core.allow, core.ignore)
        (endpoint, url, base) = (core.endpoint, core.url, core.base)
        algorithm = core.algorithm.map { ContentDigest.Algorithm($0) }
    }
}

extension SetFile {
    package init(_ wire: SetVersionFile) {
        self.init(
            wire.path, Core.TransferRequest(wire.request, kind: .download), wire.expectedDigest.flatMap(SetDigest.init),
            length: wire.length)
    }
}

extension SetDigest {
    fileprivate init?(_ wire: Wire.ContentDigest) {
        guard let algorithm = SetDigestAlgorithm(wire.algorithm) else { return nil }
        self.init(algorithm, wire.value)
    }
}

// MARK: - Manifests

extension SetManifest {
    /// A manifest without its files.
    ///
    /// - Parameter set: The name of the set.
    package init(_ record: SetVersionRecord, of set: String) {
        self.init()
        name = set
        version = record.name
        versionId = record.publicId
        manifestDigest = record.manifestDigest
        commit = record.commit
        createdAt = record.createdAt.rfc3339
        publishedAt = (record.publishedAt ?? record.createdAt).rfc3339
    }
}

extension Wire.SetManifestFile {
    package init(_ core: Core.SetManifestFile) {
        self.init()
        path = core.path
        url = core.sourceURL
        length = core.length
        digest = Wire.ContentDigest(core.digest)
        expectedDigest = core.expectedDigest.map {
            Wire.ContentDigest(algorithm: ContentDigest.Algorithm($0.algorithm), value: $0.value)
        }
        etag = core.entityTag
        lastModified = core.lastModified
        fetchedAt = core.fetchedAt?.rfc3339
    }
}

// MARK: - Events

extension EventData.DidPublish {
    init(_ core: SetPublication, _ urls: PublicURLs) {
        self.init()
        (name, version, versionId) = (core.name, core.version, core.versionId)
        (files, bytes) = (core.files, core.bytes)
        manifestURL = urls.manifest(of: core.versionId, in: core.name)
        cause = Cause(core.cause)
    }
}

extension EventData.DidFail {
    init(_ core: SetFailures) {
        self.init()
        (name, version, versionId) = (core.name, core.version, core.versionId)
        failures = core.failures.map(Wire.SetFailure.init)
    }
}
