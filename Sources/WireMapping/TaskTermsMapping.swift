import Core
package import Formats
package import Wire

// Each term occurs here twice, for reading and for writing.

extension TaskSpecification {
    /// Adopts the app's terms for a new task.
    mutating func take(_ terms: TaskTerms) {
        clientTaskId = terms.clientTaskId
        group = terms.group
        taskDescription = terms.taskDescription
        metadata = terms.metadata.dictionary
        priority = terms.priority
        earliestBeginDate = terms.earliestBeginDate.flatMap { Timestamp(rfc3339: $0) }
        confirmBeforeStart = terms.confirmBeforeStart
        countOfBytesClientExpectsToSend = terms.countOfBytesClientExpectsToSend
        countOfBytesClientExpectsToReceive = terms.countOfBytesClientExpectsToReceive
        expectedDigest = terms.expectedDigest.flatMap { Core.ContentDigest($0) }
        maximumContentLength = terms.maximumContentLength
        ifNoneMatch = terms.ifNoneMatch
        acceptableStatusCodes = terms.acceptableStatusCodes.compactMap { StatusRange($0.text) }
        failOnHTTPError = terms.failOnHTTPError
        destination = terms.destination.flatMap { Core.Destination($0) }
        destinationObject = terms.destination.flatMap { ObjectDestination($0) }
        segments = SegmentCount(terms.segments)
        mirrors = terms.mirrors
        pieces = terms.pieces.flatMap { PieceDigests($0) }
    }
}

extension TaskTerms {
    init(_ specification: TaskSpecification) {
        self.init()
        clientTaskId = specification.clientTaskId
        group = specification.group
        taskDescription = specification.taskDescription
        metadata = StringMap(sorted: specification.metadata)
        priority = specification.priority
        earliestBeginDate = specification.earliestBeginDate?.rfc3339
        confirmBeforeStart = specification.confirmBeforeStart
        countOfBytesClientExpectsToSend = specification.countOfBytesClientExpectsToSend
        countOfBytesClientExpectsToReceive = specification.countOfBytesClientExpectsToReceive
        expectedDigest = specification.expectedDigest.map(Wire.ContentDigest.init)
        maximumContentLength = specification.maximumContentLength
        ifNoneMatch = specification.ifNoneMatch
        acceptableStatusCodes = specification.acceptableStatusCodes.map { StatusCodes($0.text) }
        failOnHTTPError = specification.failOnHTTPError
        destination =
            specification.destination.map(Wire.Destination.init)
            ?? specification.destinationObject.map(Wire.Destination.init)
        segments = Segments(specification.segments)
        mirrors = specification.mirrors
        pieces = specification.pieces.map(Pieces.init)
    }
}

extension Core.Destination {
    init?(_ wire: Wire.Destination) {
        guard let root = wire.root, let path = wire.path else { return nil }
        self.init(root: root, path: path, replace: wire.replace)
    }
}

extension ObjectDestination {
    init?(_ wire: Wire.Destination) {
        guard let bucket = wire.bucket, let key = wire.key else { return nil }
        self.init()
        self.bucket = bucket
        self.key = key
        replace = wire.replace
        storageClass = wire.storageClass
        metadata = wire.metadata.dictionary
    }
}

extension Wire.Destination {
    init(_ core: Core.Destination) { self.init(root: core.root, path: core.path, replace: core.replace) }

    init(_ core: ObjectDestination) {
        self.init(
            bucket: core.bucket, key: core.key, replace: core.replace, storageClass: core.storageClass,
            metadata: StringMap(sorted: core.metadata))
    }
}

extension StatusRange {
    /// `404` or `200-299`.
    init?(_ text: String) {
        guard let range = StatusCodes.parse(text) else { return nil }
        self.init(range.lowerBound, range.upperBound)
    }

    var text: String { first == last ? "\(first)" : "\(first)-\(last)" }
}

extension SegmentCount {
    init(_ wire: Segments) {
        switch wire {
        case .count(let count): self = .count(count)
        case .auto: self = .automatic
        }
    }
}

extension Segments {
    init(_ core: SegmentCount) {
        switch core {
        case .count(let count): self = .count(count)
        case .automatic: self = .auto
        }
    }
}

extension PieceDigests {
    init?(_ wire: Pieces) {
        guard let algorithm = DigestAlgorithm(rawValue: wire.algorithm.rawValue) else { return nil }
        self.init(length: wire.length, algorithm: algorithm, values: wire.values)
    }
}

extension Pieces {
    package init(_ core: PieceDigests) {
        self.init(
            length: core.length, algorithm: ContentDigest.Algorithm(rawValue: core.algorithm.rawValue),
            values: core.values)
    }
}
