import Core
import HTTPServer
import TestSupport
import Testing

@testable import API

/// The output of gzip for compressed bytes.
private func gunzip(_ bytes: [UInt8]) async throws -> [UInt8] {
    let folder = TemporaryFolder()
    try await ChildProcess.run(["/bin/gzip", "-d", folder.write(bytes, to: "answer.gz")])
    return try #require(readFile(folder.file("answer")))
}

@Suite struct ContentCodingTests {
    private static let gzip = [("Accept-Encoding", "gzip")]

    /// A session whose first page of tasks is long enough to be compressed, and the path of that page.
    private func page(of api: ServedAPI) async throws -> String {
        try await api.session()
        for _ in 0..<3 { #expect(try await api.dev.post("/v1/sessions/s/tasks", api.task()).status == 201) }
        return "/v1/sessions/s/tasks"
    }

    @Test func `A long response is compressed for a client that accepts gzip`() async throws {
        try await ServedAPI.run { api in
            let path = try await page(of: api)
            let plain = try await api.dev.get(path)
            #expect(plain.fields["Content-Encoding"] == nil)
            #expect(plain.fields["Vary"] == "Accept-Encoding")
            let answer = try await api.dev.get(path, headers: Self.gzip)
            #expect(answer.fields["Content-Encoding"] == "gzip")
            #expect(answer.fields["Content-Type"] == "application/json")
            #expect(answer.fields["Vary"] == "Accept-Encoding")
            #expect(answer.body.count < plain.body.count / 2)
            #expect(try await gunzip(answer.body) == plain.body)
            let head = try await api.dev.send("HEAD", path, headers: Self.gzip)
            #expect(head.fields["Content-Length"] == "\(answer.body.count)")
            #expect(head.fields["Content-Encoding"] == "gzip")
        }
    }

    @Test func `A short response is not compressed`() async throws {
        try await ServedAPI.run { api in
            let answer = try await api.dev.get("/healthz", headers: Self.gzip)
            #expect(answer.fields["Content-Encoding"] == nil && answer.fields["Vary"] == nil)
            #expect(answer.text == #"{"status":"ok"}"#)
        }
    }

    @Test(arguments: [
        ("gzip", true), ("*", true), ("br, gzip;q=0.5", true), ("X-GZIP", true), ("gzip;q=1.0, identity;q=0.5", true),
        ("gzip;q=0", false), ("gzip;q=0, *", false), ("br", false), ("", false), ("identity, gzip;q=0.5", false),
        ("*;q=0", false), ("GZip ; Q=0.000", false),
    ])
    func `The weights of Accept-Encoding are honoured`(field: String, isWelcome: Bool) async throws {
        let headers = RequestHeaders([("accept-encoding", field)])
        #expect(ContentCoding.isGzipWelcome(headers) == isWelcome)
    }

    @Test func `A compressed resource has an entity tag of its own, which conditions accept`() async throws {
        try await ServedAPI.run { api in
            _ = try await page(of: api)
            var task = api.task()
            task["taskDescription"] = .string(String(repeating: "a", count: 2000))
            #expect(try await api.dev.post("/v1/sessions/s/tasks", task).status == 201)
            let path = "/v1/sessions/s/tasks/4"
            let plain = try #require(try await api.dev.get(path).etag)
            let coded = try #require(try await api.dev.get(path, headers: Self.gzip).etag)
            #expect(coded == "\(plain.dropLast())-gzip\"")
            for tag in [plain, coded, "W/\(coded)", "\"other\", \(coded)"] {
                for method in ["GET", "HEAD"] {
                    let answer = try await api.dev.send(method, path, headers: Self.gzip + [("If-None-Match", tag)])
                    #expect(answer.status == 304 && answer.body.isEmpty)
                    #expect(answer.etag == (tag == plain ? plain : coded))
                    #expect(answer.fields["Vary"] == "Accept-Encoding")
                    #expect(answer.fields["Content-Encoding"] == nil)
                }
            }
            #expect(try await api.dev.get(path, headers: Self.gzip + [("If-None-Match", "*")]).etag == coded)
            #expect(try await api.dev.get(path, headers: [("If-None-Match", "*")]).etag == plain)
            let change: JSON = ["priority": 0.75]
            let changed = try await api.dev.patch(path, change, headers: Self.gzip + [("If-Match", coded)])
            #expect(changed.status == 200 && changed.fields["Content-Encoding"] == "gzip")
            #expect(try await api.dev.patch(path, change, headers: [("If-Match", coded)]).status == 412)
        }
    }

    @Test func `Problems and the description are compressed, streams of events are not`() async throws {
        try await ServedAPI.run { api in
            try await api.session()
            let tasks = JSON.array(Array(repeating: ["kind": "nothing"], count: 40))
            let problem = try await api.dev.post("/v1/sessions/s/tasks/batch", ["tasks": tasks], headers: Self.gzip)
            #expect(problem.status == 422 && problem.fields["Content-Type"] == "application/problem+json")
            #expect(problem.fields["Content-Encoding"] == "gzip")
            for (path, document) in [("/openapi.yaml", OpenAPI.yaml), ("/openapi.json", OpenAPI.json)] {
                let answer = try await api.dev.get(path, headers: Self.gzip)
                #expect(answer.fields.values("Vary") == ["Accept-Encoding"])
                #expect(answer.etag == ContentCoding.tag(ofCompressed: document.tag))
                #expect(try await gunzip(answer.body) == document.bytes)
                let again = try await api.dev.get(path, headers: Self.gzip + [("If-None-Match", answer.etag ?? "")])
                #expect(again.status == 304)
            }
            // A compressed stream could not be read.
            let stream = try await api.dev.openStream("/v1/sessions/s/events", headers: Self.gzip)
            stream.close()
        }
    }

    @Test func `Lines of a response are compressed as they are written`() async throws {
        try await ServedAPI.run { api in
            try await api.session()
            let line = #"{"kind":"download","state":"suspended","request":{"url":"https://example.com/a"}}"#
            let lines = String(repeating: line + "\n", count: 1200)
            let headers = [("Content-Type", "application/x-ndjson"), ("Accept", "application/x-ndjson")]
            let answer = try await api.dev.send(
                "POST", "/v1/sessions/s/tasks", headers: headers + Self.gzip, body: bytes(lines))
            #expect(answer.status == 200 && answer.fields["Content-Encoding"] == "gzip")
            let results = String(decoding: try await gunzip(answer.body), as: UTF8.self).split(separator: "\n")
            #expect(results.count == 1200)
            #expect(results.last?.contains("1200") == true)
        }
    }
}
