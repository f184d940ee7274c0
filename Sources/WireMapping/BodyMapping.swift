package import Core
package import Wire

extension StoredBody {
    /// Length and digest are those of the complete body, so a draft has none.
    package init(_ record: BodyRecord) {
        self.init()
        id = record.publicId
        length = record.isComplete ? record.length : nil
        digest = record.digest.map { Wire.ContentDigest(algorithm: .sha256, value: $0) }
        expiresAt = record.uses > 0 ? nil : record.expiresAt?.rfc3339
    }
}

extension ListedBody {
    package init(_ record: BodyRecord) {
        self.init()
        body = StoredBody(record)
        complete = record.isComplete
        countOfBytesStored = record.length
        uses = record.uses
        createdAt = record.createdAt.rfc3339
    }
}
