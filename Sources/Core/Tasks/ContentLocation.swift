/// The content of a finished task, and its location.
package struct ContentLocation: Sendable {
    package var record: ContentRecord
    package var place: BodyLocation.Place?

    package init(record: ContentRecord, place: BodyLocation.Place? = nil) {
        self.record = record
        self.place = place
    }
}
