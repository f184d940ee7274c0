import Core
import Formats
import Wire

@testable import API
@testable import Buckets

/// The element as a document, with every namespace declared where it occurs.
private func document(_ element: XMLElement) -> String {
    let entities: [Unicode.Scalar: String] = ["&": "&amp;", "<": "&lt;", "\"": "&quot;"]
    func escaped(_ text: String) -> String { text.unicodeScalars.map { entities[$0] ?? String($0) }.joined() }
    let attributes = element.attributes.sorted { $0.key < $1.key }.map { " \($0.key)=\"\(escaped($0.value))\"" }
    return "<\(element.name) xmlns=\"\(escaped(element.namespace))\"\(attributes.joined())>"
        + element.children.map(document).joined() + escaped(element.text) + "</\(element.name)>"
}

/// A written element is read back equal.
func checkXML(_ bytes: [UInt8]) throws {
    let root: XMLElement
    do throws(XMLError) { root = try XMLElement(parsing: bytes) } catch {
        return try hold((0...bytes.count).contains(error.offset), "the offset \(error.offset) lies outside")
    }
    let again = try? XMLElement(parsing: Array(document(root).utf8))
    try hold(again == root, "an element changes when it is written and read")
}

/// The service accepts the download of a document as JSON.
func checkMetalink(_ bytes: [UInt8]) throws {
    guard let creation = try? Metalink.creation(bytes) else { return }
    try hold((try? TaskCreation(parsing: creation.jsonBytes)) == creation, "the download is none that is accepted")
    try hold(creation.mirrors.count <= TaskTerms.mostMirrors, "\(creation.mirrors.count) mirrors")
}

/// A store's lists and errors. The document that completes an upload has the parts' tags.
func checkS3(_ bytes: [UInt8]) throws {
    let uploads = S3Answer.uploads(bytes)
    try hold(uploads == nil || S3Answer.objects(bytes) == nil, "one list is of uploads and of objects")
    try hold(S3Error(status: 400, body: bytes, to: "GET") != nil, "a status without success is no error")
    try hold(S3Error(status: 200, body: bytes, to: "GET") == nil, "the bytes of an object are an error")
    if let error = S3Error(status: 200, body: bytes, to: "POST") {
        try hold(S3Error(status: 500, body: bytes, to: "PUT")?.code == error.code, "the code depends on the status")
    }
    let tags = lines(bytes).map(text).filter { $0.unicodeScalars.allSatisfy { $0.value >= 0x20 } }
    // An upload has 10,000 parts.
    let parts = Array(tags.prefix(10_000))
    let completion = try XMLElement(parsing: S3Answer.completion(of: parts))
    try hold(
        completion.all("Part").map { $0.first("ETag")?.text } == parts, "a tag changes when it is written and read")
}
