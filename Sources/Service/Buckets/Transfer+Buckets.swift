import Buckets
import Core
import Notation
import TransferEngine

/// How objects in buckets shape a transfer's requests.
extension Transfer {
    /// Whether its content becomes an object while it arrives.
    var writesObject: Bool { specification.destinationObject != nil }

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
