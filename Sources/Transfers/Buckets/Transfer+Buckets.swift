package import Buckets
package import Core
import Formats
import Store
import TransferEngine

/// The influence of objects in buckets on a transfer's requests.
extension Transfer {
    /// Whether the content becomes an object while it arrives.
    var writesObject: Bool { becomesContent || specification.destinationObject != nil }

    /// Whether the object is one in the bucket of contents.
    var isOfContents: Bool { specification.destinationObject == nil }

    /// The object that the current request's content becomes: the one that the app named, or the one of the upload that
    /// is continued; nil for a new one.
    var knownDestination: ObjectDestination? {
        specification.destinationObject ?? progress.kept.parts?.key.map(ObjectDestination.init(content:))
    }

    /// Whether the current request goes to the bucket of the task's object.
    var isAtBucket: Bool { specification.request.object != nil && request.url.origin == taskURL.origin }

    /// The number of parts in the bucket after which the current request resumes.
    var storedParts: Int { attempt.resuming == nil ? 0 : progress.kept.parts?.parts.count ?? 0 }
}

extension MultipartUpload {
    /// Whether an attempt can resume after these parts, or by completing the object.
    func canBeGoneOnWith(_ specification: TaskSpecification, _ point: ResumePoint?) -> Bool {
        whole != nil || length == point?.offset && knows(specification.digestsWanted)
    }
}

extension ServiceSettings {
    /// The address of a task's object; nil if the operator has no such bucket.
    package func target(of object: ObjectReference) -> S3Target? {
        buckets[object.bucket]?.bucket.target(object)
    }
}
