extension MemberValue {
    /// Reads JSON text that the program wrote itself. Members that it does not know are passed over.
    ///
    /// - Throws: All faults at once.
    package init(atRest bytes: [UInt8]) throws(JSONError) {
        if let value = Self.inOrder(bytes) {
            self = value
            return
        }
        let faults = Faults()
        let value = Self.read(
            try JSON.parse(bytes, allowsNull: true), nil, JSONPosition(nil, in: nil, faults, .tolerant))
        guard let value, faults.list.isEmpty else { throw .invalid(faults.list) }
        self = value
    }

    /// Reads JSON text that this version of the program wrote, or could have written; nil for any other.
    package static func inOrder(_ bytes: [UInt8]) -> Self? {
        bytes.withUnsafeBufferPointer { bytes in
            var reader = KeptReader(bytes)
            return reader.document()
        }
    }

    /// The value as JSON text for the database: what has no value is left out.
    package var bytesAtRest: [UInt8] {
        var writer = JSONWriter(.rest, capacity: 1024)
        write(to: &writer)
        return writer.bytes
    }
}
