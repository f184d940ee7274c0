@testable import Core
@testable import URLSessionClient

/// Names that origins choose stay safe, and the service sends them so that they are read back equal.
func checkDisposition(_ bytes: [UInt8]) throws {
    let text = text(bytes)
    if let type = MediaType(text) {
        try hold(type.essence == type.essence.asciiLowercased && type.essence.contains("/"), "\(type.essence)")
    }
    for name in [ContentDisposition(text)?.filename, FileName.safe(text)] {
        guard let name else { continue }
        try check(name)
        let sent = ContentDisposition(filename: name)
        try hold(sent.headerValue.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "the field \(sent.headerValue)")
        try hold(ContentDisposition(sent.headerValue) == sent, "\(sent.headerValue) is another name")
    }
    try check(FileName.suggested(url: text, fields: HTTPFields()))
    if let saved = SavedName(text) {
        let bytes = saved.text.utf8
        try hold((1...200).contains(bytes.count) && bytes.first != 0x2E, "the saved name \(saved.text)")
        try hold(
            !bytes.contains { $0 < 0x20 || $0 == 0x2F || $0 == 0x5C || $0 == 0x7F }, "the saved name \(saved.text)")
        try hold(SavedName(saved.numbered(2)) != nil, "\(saved.numbered(2)) is no name")
    }
}

private func check(_ name: String) throws {
    let bytes = name.utf8
    try hold((1...255).contains(bytes.count) && name != "." && name != "..", "the name \(name)")
    try hold(!bytes.contains { $0 < 0x20 || $0 == 0x2F || $0 == 0x5C || $0 == 0x7F }, "the name \(name)")
    try hold(bytes.last != 0x20 && bytes.last != 0x2E, "\(name) ends in a space or a dot")
    try hold(FileName.safe(name) == name, "\(name) is not safe yet")
}
