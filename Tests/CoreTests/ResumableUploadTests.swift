import Core
import Testing

struct ResumableUploadTests {
    typealias Upload = ResumableUpload

    private static let resource = ParsedURL(
        text: "http://a.example/up/1", isSecure: false, host: "a.example", port: 80)

    private func head(_ status: Int, _ fields: [String: String] = [:]) -> ResponseHead {
        ResponseHead(
            status: status,
            fields: HTTPFields(fields.sorted { $0.key < $1.key }.map { HTTPField(name: $0.key, value: $0.value) }))
    }

    /// An upload of 100 bytes at a step; the server has 10 of them.
    private func upload(_ step: Upload.Step, _ version: Upload.Version = .eight) -> Upload {
        var upload = Upload(version: version, length: 100, resource: Self.resource, offset: 10)
        switch step {
        case .create:
            upload.startAgain()
            _ = upload.handle(
                informational: head(104, ["Upload-Draft-Interop-Version": String(version.rawValue)]),
                resource: Self.resource)
        case .ask: break
        case .append(let offset):
            let name = version == .three ? "Upload-Incomplete" : "Upload-Complete"
            _ = upload.handle(
                answer: head(204, ["Upload-Offset": String(offset), name: version == .three ? "?1" : "?0"]),
                hasSentAll: true)
        case .abandon: upload.abandon()
        }
        return upload
    }

    private func text(_ fields: HTTPFields) -> [String] { fields.fields.map { "\($0.name): \($0.value)" } }

    // MARK: Requests

    @Test func `Each version of the draft has its own header fields`() {
        let eight = Upload(version: .eight, length: 100)
        #expect(eight.method == nil)
        #expect(
            text(eight.fields) == ["Upload-Draft-Interop-Version: 8", "Upload-Complete: ?1", "Upload-Length: 100"])
        let three = Upload(version: .three, length: 100)
        #expect(
            text(three.fields) == ["Upload-Draft-Interop-Version: 3", "Upload-Incomplete: ?0", "Upload-Length: 100"])
        let six = upload(.append(from: 40), .six)
        #expect(six.method == "PATCH")
        #expect(
            text(six.fields) == [
                "Upload-Draft-Interop-Version: 6", "Upload-Complete: ?1", "Upload-Offset: 40",
                "Content-Type: application/partial-upload",
            ])
        #expect(
            text(upload(.append(from: 40), .three).fields) == [
                "Upload-Draft-Interop-Version: 3", "Upload-Incomplete: ?0", "Upload-Offset: 40",
            ])
        #expect(upload(.ask).method == "HEAD")
        #expect(text(upload(.ask).fields) == ["Upload-Draft-Interop-Version: 8"])
        #expect(upload(.abandon).method == "DELETE")
    }

    @Test func `Only methods with content are upgraded, unless the app itself uses the draft`() {
        #expect(["POST", "PUT", "PATCH"].allSatisfy(Upload.mayUpgrade))
        #expect(!["GET", "HEAD", "DELETE", "put"].contains(where: Upload.mayUpgrade))
        #expect(Upload.isSpoken(in: HTTPFields([HTTPField(name: "upload-complete", value: "?1")])))
        #expect(!Upload.isSpoken(in: HTTPFields([HTTPField(name: "Content-Type", value: "a/b")])))
    }

    // MARK: 104

    @Test func `A 104 of the same version makes an upload resumable`() {
        var upload = Upload(version: .six, length: 100)
        let offer = head(104, ["Upload-Draft-Interop-Version": "6"])
        let isNew = upload.handle(informational: offer, resource: Self.resource)
        #expect(isNew)
        #expect(upload.resource == Self.resource)
        let isNewAgain = upload.handle(informational: offer, resource: Self.resource)
        #expect(!isNewAgain)
    }

    @Test(arguments: [(103, "8"), (104, "6"), (104, ""), (104, "8x"), (104, "-8")])
    func `Other informational responses are ignored`(_ status: Int, _ version: String) {
        var upload = Upload(version: .eight, length: 100)
        let isNew = upload.handle(
            informational: head(status, ["Upload-Draft-Interop-Version": version]), resource: Self.resource)
        #expect(!isNew)
        #expect(upload.resource == nil)
    }

    @Test func `A 104 may report progress, but never backwards nor beyond the end`() {
        var upload = upload(.create)
        for (told, known) in [("50", 50), ("20", 50), ("101", 50), ("100", 100)] as [(String, Int64)] {
            _ = upload.handle(
                informational: head(104, ["Upload-Draft-Interop-Version": "8", "Upload-Offset": told]), resource: nil)
            #expect(upload.offset == known)
        }
    }

    // MARK: Responses

    struct Row: Sendable, CustomTestStringConvertible {
        var step: Upload.Step
        var version = Upload.Version.eight
        var status: Int
        var fields: [String: String] = [:]
        var hasSentAll = true
        var decision: Upload.Decision
        var next: Upload.Step

        var testDescription: String { "\(step) v\(version.rawValue) \(status) \(fields) \(hasSentAll)" }
    }

    private static let append = Upload.Step.append(from: 40)

    static let rows: [Row] = [
        // The target's own response, whatever its status.
        Row(step: .create, status: 503, fields: ["Upload-Complete": "?1"], decision: .respond, next: .create),
        Row(step: append, status: 422, fields: ["Upload-Complete": "?1"], decision: .respond, next: append),
        Row(step: append, status: 404, fields: ["Upload-Complete": "?1;a=b"], decision: .respond, next: append),
        Row(
            step: append, version: .three, status: 500, fields: ["Upload-Incomplete": "?0"], decision: .respond,
            next: append),
        Row(step: .create, status: 201, decision: .respond, next: .create),
        Row(step: append, status: 201, decision: .respond, next: append),
        Row(step: append, version: .six, status: 503, decision: .respond, next: append),
        Row(step: .create, status: 413, hasSentAll: false, decision: .respond, next: .create),
        Row(step: append, status: 413, fields: ["Upload-Complete": "?0"], decision: .respond, next: append),
        // Responses about the upload.
        Row(step: append, status: 201, fields: ["Upload-Complete": "?0"], decision: .proceed, next: .ask),
        Row(
            step: append, version: .three, status: 201, fields: ["Upload-Incomplete": "?1"], decision: .proceed,
            next: .ask),
        Row(step: append, status: 503, decision: .wait, next: append),
        Row(step: append, version: .six, status: 503, hasSentAll: false, decision: .wait, next: append),
        Row(step: append, status: 429, decision: .wait, next: append),
        Row(step: append, status: 409, decision: .proceed, next: .ask),
        Row(step: append, status: 404, decision: .startAgain, next: .create),
        Row(step: append, status: 410, decision: .startAgain, next: .create),
        Row(step: append, status: 308, fields: ["Location": "/b"], decision: .move("/b"), next: append),
        Row(step: append, status: 401, decision: .judge, next: append),
        Row(step: .create, status: 307, decision: .judge, next: .create),
        Row(step: .create, status: 401, decision: .judge, next: .create),
        Row(step: .create, status: 502, hasSentAll: false, decision: .wait, next: .create),
        // The server's offset.
        Row(
            step: .ask, status: 204, fields: ["Upload-Offset": "70", "Upload-Complete": "?0"], decision: .proceed,
            next: .append(from: 70)),
        Row(step: .ask, status: 200, fields: ["Upload-Offset": "100"], decision: .proceed, next: .append(from: 100)),
        Row(step: .ask, status: 204, fields: ["Upload-Offset": "0"], decision: .proceed, next: .append(from: 0)),
        Row(
            step: .ask, version: .three, status: 204, fields: ["Upload-Offset": "7", "Upload-Incomplete": "?1"],
            decision: .proceed, next: .append(from: 7)),
        Row(
            step: .ask, status: 204, fields: ["Upload-Offset": "100", "Upload-Complete": "?1"], decision: .respond,
            next: .ask),
        Row(step: .ask, status: 204, fields: ["Upload-Offset": "101"], decision: .fail, next: .ask),
        Row(step: .ask, status: 204, decision: .startAgain, next: .create),
        Row(step: .ask, status: 204, fields: ["Upload-Offset": "-1"], decision: .startAgain, next: .create),
        Row(step: .ask, status: 204, fields: ["Upload-Offset": "1e1"], decision: .startAgain, next: .create),
        Row(step: .ask, status: 404, decision: .startAgain, next: .create),
        Row(step: .ask, status: 410, decision: .startAgain, next: .create),
        Row(step: .ask, status: 405, decision: .startAgain, next: .create),
        Row(step: .ask, status: 503, decision: .wait, next: .ask),
        Row(step: .ask, status: 307, fields: ["Location": "/b"], decision: .move("/b"), next: .ask),
        Row(step: .ask, status: 401, decision: .judge, next: .ask),
    ]

    @Test(arguments: rows)
    func `A response decides the next step`(_ row: Row) {
        var upload = upload(row.step, row.version)
        let decision = upload.handle(answer: head(row.status, row.fields), hasSentAll: row.hasSentAll)
        #expect(decision == row.decision)
        #expect(upload.step == row.next)
        #expect((upload.resource == nil) == (row.decision == .startAgain))
    }

    @Test(arguments: [200, 201, 307, 404, 413, 500, 503])
    func `Without a 104 a response is final`(_ status: Int) {
        var upload = Upload(version: .eight, length: 100)
        let decision = upload.handle(answer: head(status), hasSentAll: true)
        #expect(decision == .judge)
        #expect(upload.resource == nil)
    }

    @Test func `A server that repeats an offset without progress is not queried in a circle`() {
        var upload = upload(.append(from: 40))
        var decisions: [Upload.Decision] = []
        for _ in 0..<3 {
            decisions.append(upload.handle(answer: head(409), hasSentAll: false))
            decisions.append(upload.handle(answer: head(204, ["Upload-Offset": "40"]), hasSentAll: true))
        }
        #expect(decisions == [.proceed, .proceed, .wait, .proceed, .wait, .proceed])
    }

    @Test func `A server that never completes the upload is not queried in a circle`() {
        var upload = upload(.append(from: 40))
        let incomplete = head(204, ["Upload-Complete": "?0"])
        let claim = head(104, ["Upload-Draft-Interop-Version": "8", "Upload-Offset": "60"])
        var decisions: [Upload.Decision] = []
        for offset in ["40", "40", "70", "70"] {
            // Bytes that a 104 claims and the next query denies are no progress.
            _ = upload.handle(informational: claim, resource: nil)
            decisions.append(upload.handle(answer: incomplete, hasSentAll: true))
            decisions.append(upload.handle(answer: head(204, ["Upload-Offset": offset]), hasSentAll: true))
        }
        decisions.append(upload.handle(answer: incomplete, hasSentAll: true))
        #expect(
            decisions == [
                .proceed, .proceed, .wait, .proceed, .wait, .proceed, .proceed, .proceed, .wait,
            ])
    }

    @Test func `An empty creation is no failure to complete the upload`() {
        var upload = upload(.create)
        let incomplete = head(201, ["Upload-Complete": "?0"])
        var decisions = [upload.handle(answer: incomplete, hasSentAll: false)]
        decisions.append(upload.handle(answer: head(204, ["Upload-Offset": "0"]), hasSentAll: true))
        decisions.append(upload.handle(answer: incomplete, hasSentAll: true))
        #expect(decisions == [.proceed, .proceed, .proceed])
    }

    @Test func `Every move of a resource counts, even to its own URL and across a restart`() {
        var upload = upload(.append(from: 40))
        for _ in 0..<2 { upload.move(to: Self.resource) }
        upload.startAgain()
        #expect(upload.moves == 2)
    }

    @Test func `A moved resource is queried at its new URL`() {
        var upload = upload(.append(from: 40))
        let place = ParsedURL(text: "http://b.example/2", isSecure: false, host: "b.example", port: 80)
        upload.move(to: place)
        #expect(upload.step == .ask)
        #expect(upload.resource == place)
    }

    // MARK: Versions

    @Test func `An origin gets the version that it answered`() {
        var versions = UploadVersions()
        let (one, other) = ("http://a:80", "http://b:80")
        #expect(versions.version(for: one) == .eight)
        versions.noteSilence(to: .eight, of: one)
        #expect(versions.version(for: one) == .six)
        versions.noteSilence(to: .eight, of: one)
        #expect(versions.version(for: one) == .six)
        versions.note(.six, of: one)
        versions.noteSilence(to: .six, of: one)
        #expect(versions.version(for: one) == .six)
        #expect(versions.version(for: other) == .eight)
    }

    @Test func `An origin that answers no version gets the newest again`() {
        var versions = UploadVersions()
        let origin = "http://a:80"
        for version in [.eight, .six, .three, .eight, .eight] as [Upload.Version] {
            #expect(versions.version(for: origin) == version)
            versions.noteSilence(to: version, of: origin)
        }
    }
}
