import Core
import HTTPServer
import TestSupport
import Testing
import Wire

@testable import API

/// `GET /v1` and `/problems/CODE`.
@Suite struct IndexRoutesTests {
    @Test func `The index leads to existing routes, without a key`() async throws {
        try await ServedAPI.run { api async throws in
            let index = try await api.dev.with(key: nil).get("/v1")
            #expect(index.status == 200 && index.json["name"] == "urlsessiond")
            #expect(index.json["version"].string == Release.version)
            let patterns = Set(api.server.routes.map(\.pattern))
            for part in ["resources", "documentation"] {
                let links = try #require(index.json[part].object)
                #expect(!links.isEmpty)
                for (name, path) in links { #expect(patterns.contains(path.string ?? ""), "\(name): \(path)") }
            }
            // Each collection of the API is listed.
            let collections = patterns.filter { $0.hasPrefix("/v1/") && !$0.contains("{") }
            let known = Set(try #require(index.json["resources"].object).values.compactMap(\.string))
            for path in ["/v1/sessions", "/v1/sets", "/v1/tasks", "/v1/launches", "/v1/bodies"] {
                #expect(known.contains(path) && collections.contains(path))
            }
        }
    }

    @Test func `Each problem code has a page for people and for programs`() async throws {
        try await ServedAPI.run { api async throws in
            let client = api.dev.with(key: nil)
            for code in ProblemCode.known {
                let markdown = try await client.get("/problems/\(code.rawValue)")
                #expect(markdown.status == 200, "\(code.rawValue)")
                #expect(markdown.fields["Content-Type"] == "text/markdown; charset=utf-8")
                #expect(markdown.text.hasPrefix("# \(code.title)\n\n`\(code.rawValue)`\n\nStatus \(code.status)"))
                #expect(markdown.text.contains("*What to do:*") && !markdown.text.contains("\n## "))
                let html = try await client.get(
                    "/problems/\(code.rawValue)", headers: [("Accept", "text/html,*/*;q=0.8")])
                #expect(html.fields["Content-Type"] == "text/html; charset=utf-8")
                #expect(html.fields["Content-Security-Policy"]?.hasPrefix("default-src 'none'") == true)
                #expect(
                    html.text.contains("<em>What to do:</em>") && !html.text.contains("](") && !html.text.contains("`"))
            }
            let refused = try await client.get("/problems/uri-too-long", headers: [("Accept", "text/html")])
            #expect(refused.text.contains("<a href=\"/problems/invalid-value\"><code>invalid-value</code></a>"))
        }
    }

    @Test func `An unknown problem code is 404`() async throws {
        try await ServedAPI.run { api async throws in
            for code in ["nothing", "Not-Found", "..", "%3Cscript%3E"] {
                let answer = try await api.dev.with(key: nil).get("/problems/\(code)")
                #expect(answer.status == 404 && answer.code == "not-found", "\(code): \(answer.text)")
            }
            let json = try await api.dev.with(key: nil).get("/problems/not-found", headers: [("Accept", "image/png")])
            #expect(json.status == 406)
        }
    }
}
