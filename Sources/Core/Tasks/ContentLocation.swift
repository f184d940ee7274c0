/// The content of a finished task, and its location.
package struct ContentLocation: Sendable {
    package var record: ContentRecord
    package var storage: BodyLocation.Storage?

    package init(record: ContentRecord, storage: BodyLocation.Storage? = nil) {
        self.record = record
        self.storage = storage
    }
}
