import Base
import Core
import TestSupport
import Testing

@testable import API

@Suite struct PageRoutesTests {
    @Test func `The embedded files are those of the repository`() {
        let folder = "\(repository)/Sources/CPage/site"
        #expect(Set(PageFiles.all.keys) == Set(filesBelow(folder)), "run scripts/embed-page")
        for (name, file) in PageFiles.all {
            #expect(file.bytes == readFile("\(folder)/\(name)"), "\(name): run scripts/embed-page")
        }
    }

    @Test func `The page is served with its type and a strict policy`() async throws {
        try await ServedAPI.run { api in
            let anyone = api.dev.with(key: nil)
            let types = [
                "/": "text/html", "/docs": "text/html", "/page/main.js": "text/javascript",
                "/page/base.css": "text/css", "/page/icon.svg": "image/svg+xml",
            ]
            for (path, type) in types {
                let answer = try await anyone.get(path)
                #expect(answer.status == 200, "\(path)")
                #expect(answer.fields["Content-Type"] == "\(type); charset=utf-8")
                #expect(answer.fields["X-Content-Type-Options"] == "nosniff")
                #expect(answer.fields["Referrer-Policy"] == "no-referrer")
                let policy = answer.fields["Content-Security-Policy"] ?? ""
                #expect(
                    policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"))
                for rule in ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"] {
                    #expect(policy.contains(rule))
                }
                let again = try await anyone.get(path, headers: [("If-None-Match", answer.etag ?? "")])
                #expect(again.status == 304)
            }
            for path in ["/page/nothing.js", "/page/..%2FCPage.h", "/page/"] {
                #expect(try await anyone.get(path).status == 404, "\(path)")
            }
        }
    }

    @Test func `Scripts are compressed`() async throws {
        try await ServedAPI.run { api in
            let gzip = [("Accept-Encoding", "gzip")]
            let plain = try await api.dev.with(key: nil).get("/page/main.js")
            let answer = try await api.dev.with(key: nil).get("/page/main.js", headers: gzip)
            #expect(answer.fields["Content-Encoding"] == "gzip" && answer.body.count < plain.body.count / 2)
        }
    }

    @Test func `Without the page its routes do not exist`() async throws {
        try await ServedAPI.run(configured: { $0.servesPage = false }) { api in
            for path in ["/", "/docs", "/page/main.js"] {
                let answer = try await api.dev.with(key: nil).get(path)
                #expect(answer.status == 404, "\(path)")
            }
        }
    }
}
