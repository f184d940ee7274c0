extension MemberValue {
    /// Reads JSON text of the program itself. Unknown members are skipped.
    ///
    /// - Throws: ``JSONError`` with all faults.
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

    /// Reads JSON text in exactly the form of this version of the program; `nil` for any other text.
    package static func inOrder(_ bytes: [UInt8]) -> Self? {
        bytes.withUnsafeBufferPointer { bytes in
            var reader = KeptReader(bytes)
            return reader.document()
        }
    }

    /// The value as JSON text for the database, without members that have no value.
    package var bytesAtRest: [UInt8] {
        var writer = JSONWriter(.rest, capacity: 1024)
        write(to: &writer)
        return writer.bytes
    }
}
