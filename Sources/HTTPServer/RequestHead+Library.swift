import CMicroHTTPD

extension RequestHead {
    /// Reads the head that libmicrohttpd parsed, and its positions in the buffer.
    ///
    /// libmicrohttpd 0.9.75 cuts its buffer into strings in place: it overwrites CRLF by two NULs, a bare LF by one,
    /// and moves a folded line elsewhere (renaming the field). A head is therefore plain exactly if each string begins
    /// where a CRLF after the previous one would leave it. Later versions reject these forms themselves and may store
    /// heads differently.
    init(
        _ connection: ConnectionHandle, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>,
        target: String, at targetAddress: UInt
    ) {
        var collected = Collected()
        withUnsafeMutablePointer(to: &collected) {
            _ = MHD_get_connection_values_n(connection.pointer, .HEADER_KIND, collect, $0)
        }
        self.method = String(cString: method)
        self.version = String(cString: version)
        self.target = target
        fields = collected.fields
        size = mhd_request_header_size(connection.pointer)

        let start = UInt(bitPattern: method)
        let versionStart = UInt(bitPattern: version)
        var next = versionStart + UInt(self.version.utf8.count) + 2
        var isPlain = targetAddress == start + UInt(self.method.utf8.count) + 1
        isPlain = isPlain && versionStart == targetAddress + UInt(target.utf8.count) + 1
        for place in collected.places {
            isPlain = isPlain && place.name == next && place.value > place.name
            next = place.end + 2
        }
        isPlain = isPlain && start + UInt(size) == next + 2
        self.isPlain = isPlain || !Self.isLibraryLenient
    }

    /// Whether the library is the version whose parser accepts invalid heads.
    private static let isLibraryLenient = String(cString: MHD_get_version()) == "0.9.75"
}

private struct Collected {
    var fields: [(name: String, value: String)] = []
    var places: [(name: UInt, value: UInt, end: UInt)] = []
}

private let collect: MHD_KeyValueIteratorN = { context, _, name, nameLength, value, valueLength in
    guard let context, let name else { return .YES }
    func text(_ start: UnsafePointer<CChar>, _ count: Int) -> String {
        String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
    }
    let collected = context.assumingMemoryBound(to: Collected.self)
    collected.pointee.fields.append((text(name, nameLength), value.map { text($0, valueLength) } ?? ""))
    let valueStart = UInt(bitPattern: value)
    collected.pointee.places.append((UInt(bitPattern: name), valueStart, valueStart + UInt(valueLength)))
    return .YES
}
