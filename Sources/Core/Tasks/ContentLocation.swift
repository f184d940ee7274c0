/// The bytes of a finished task, where they are.
package struct ContentLocation: Sendable {
    package var record: ContentRecord
    package var place: BodyLocation.Place?

    package init(record: ContentRecord, place: BodyLocation.Place? = nil) {
        self.record = record
        self.place = place
    }
}
