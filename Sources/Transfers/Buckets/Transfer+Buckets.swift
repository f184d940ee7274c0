package import Buckets
package import Core
import Formats
import Store
import TransferEngine

/// How objects in buckets shape a transfer's requests.
extension Transfer {
    /// Whether its content becomes an object while it arrives.
    var writesObject: Bool { becomesContent || specification.destinationObject != nil }

    /// Whether the object is one in the bucket of contents.
    var isOfContents: Bool { specification.destinationObject == nil }

    /// The object that the current request's content becomes: the one that the app named, or that of the upload that it goes
    /// on with; nil for one that is new.
    var knownDestination: ObjectDestination? {
        specification.destinationObject ?? progress.multipart?.key.map(ObjectDestination.init(content:))
    }

    /// Whether the current request goes to the bucket of the object that the app asked for.
    var isAtBucket: Bool { specification.request.object != nil && request.url.origin == taskURL.origin }

    /// Parts that the bucket has, behind which the current request goes on.
    var storedParts: Int { attempt.resuming == nil ? 0 : progress.multipart?.parts.count ?? 0 }
}

extension MultipartUpload {
    /// Whether an attempt can begin behind these parts, or with making them the object.
    func canBeGoneOnWith(_ specification: TaskSpecification, _ point: ResumePoint?) -> Bool {
        whole != nil || length == point?.offset && knows(specification.digestsWanted)
    }
}

extension ServiceSettings {
    /// Where an object is that a task asks for; nil where the operator has no such bucket.
    package func target(of object: ObjectReference) -> S3Target? {
        buckets[object.bucket]?.bucket.target(object)
    }
}
