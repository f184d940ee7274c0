import Buckets
import Core
import Formats
import Store
import TransferEngine

/// How objects in buckets shape a transfer's requests.
extension Transfer {
    /// Whether its content becomes an object while it arrives.
    var writesObject: Bool { becomesContent || specification.destinationObject != nil }

    /// The object that its content becomes: the one that is being written, the one that the app named, or that of the
    /// upload that it goes on with.
    var destinationObject: ObjectDestination? {
        if let named = specification.destinationObject { return named }
        return writing?.writer.destination ?? progress.multipart?.key.map(ObjectDestination.init(content:))
    }

    /// The object that the current request's content becomes. Without an upload to go on with it is a new one.
    func newDestination(_ contents: ContentsBucket?) -> ObjectDestination? {
        if let known = specification.destinationObject ?? progress.multipart?.key.map(ObjectDestination.init(content:))
        {
            return known
        }
        return becomesContent ? contents.map { ObjectDestination(content: $0.newKey(of: task.id)) } : nil
    }

    /// Whether the current request goes to the bucket of the object that the app asked for.
    var isAtBucket: Bool { specification.request.object != nil && url.origin == taskURL.origin }

    /// What opens that bucket to the current request, and no other server.
    var accessHere: (fields: HTTPFields, egress: EgressPolicy)? { isAtBucket ? bucketAccess : nil }

    /// Parts that the bucket has, behind which the current request goes on.
    var storedParts: Int { resuming == nil ? 0 : progress.multipart?.parts.count ?? 0 }
}

extension MultipartUpload {
    /// Whether an attempt can begin behind these parts, or with making them the object.
    func canBeGoneOnWith(_ specification: TaskSpecification, _ point: ResumePoint?) -> Bool {
        whole != nil || length == point?.offset && knows(specification.digestsWanted)
    }
}

extension ServiceSettings {
    /// Where an object is that a task asks for; nil where the operator has no such bucket.
    func target(of object: ObjectReference) -> S3Target? {
        buckets[object.bucket]?.bucket.target(object)
    }
}
