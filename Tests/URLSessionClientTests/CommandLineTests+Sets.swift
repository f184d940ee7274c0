import Base
import Foundation
import TestSupport
import Testing

/// Sets, against the service itself.
extension CommandLineTests {
    private func list() -> String {
        origin.serve("/a.bin", .generated(seed: 1, length: 100_000))
        origin.serve("/b.txt", .text("two"))
        return "\(origin.url("/a.bin"))\n\(origin.url("/b.txt"))\td/b.txt\n"
    }

    @Test func `A list of URLs is published, and saved as files`() async throws {
        let published = try await run(list(), ["set", "publish", "s", "-", "--version", "1", "--wait"])
        #expect(published.first?.hasPrefix("s\t1\tsver_") == true && published.first?.hasSuffix("published") == true)
        #expect(try await call("sets").first?.hasPrefix("s\t1\t2\t100003\t") == true)
        let saved = try await call("get", "--set", "s", "out/")
        #expect(Set(saved) == ["saved out/a.bin (100 kB)", "saved out/d/b.txt (3 B)"], "\(saved)")
        #expect(fileSHA256(folder.file("out/a.bin")) == Content.sha256(seed: 1, length: 100_000))
        #expect(readFile(folder.file("out/d/b.txt")) == Array("two".utf8))
        // What is there with the same bytes counts as saved.
        #expect(try await call("get", "--set", "s", "out").allSatisfy { $0.hasPrefix("is there: ") })
        folder.write(Array("other".utf8), to: "out/d/b.txt")
        let failed = try await failure("get", "--set", "s", "--set-version", "1", "out")
        #expect(failed.status == 1 && failed.errors.contains("d/b.txt") && failed.errors.contains("--force"))
        #expect(readFile(folder.file("out/d/b.txt")) == Array("other".utf8))
        try await call("get", "--set", "s", "--force", "-o", "out")
        #expect(readFile(folder.file("out/d/b.txt")) == Array("two".utf8))
        #expect(filesBelow(folder.path).allSatisfy { !$0.contains(".part-") })
    }

    @Test func `A failing file fails the command, and its reason is printed`() async throws {
        origin.serve("/a", .text("one"))
        let lines = "\(origin.url("/a"))\n\(origin.url("/missing"))\n"
        let failed = try await #require(throws: ChildProcess.Failed.self) {
            try await run(lines, ["set", "publish", "s", "-", "--version", "1", "--wait"])
        }
        #expect(failed.status >> 8 == 1 && failed.errors.contains("missing"), "\(failed.errors)")
        #expect(try await call("set", "show", "s", "1").first?.hasPrefix("version 1 of s: failed") == true)
        origin.serve("/missing", .text("here"))
        #expect(try await call("set", "retry", "s", "1", "--wait").first?.hasSuffix("published") == true)
        #expect(try await failure("get", "--set", "none").errors.contains("There is no set \"none\""))
    }

    @Test func `A revision that has not moved is published already`() async throws {
        let commit = String(repeating: "c0", count: 20)
        origin.serve("/api/models/o/n/revision/main", .text("{\"id\":\"o/n\",\"sha\":\"\(commit)\"}"))
        let blob = "64c5e5885a4b06010b3a0c20edb7900dd0311025"
        origin.serve(
            "/api/models/o/n/tree/\(commit)", .text(#"[{"type":"file","path":"a","size":3,"oid":"\#(blob)"}]"#))
        origin.serve("/o/n/resolve/\(commit)/a", .text("two"))
        for _ in 0..<2 {
            let lines = try await call("set", "publish", "s", "--hf", "o/n", "--endpoint", origin.url(""), "--wait")
            #expect(lines.last?.hasPrefix("s\t\(commit)\tsver_") == true && lines.last?.hasSuffix("published") == true)
        }
        #expect(origin.requests("/o/n/resolve/\(commit)/a").count == 1)
    }

    @Test func `A set switches to a kept version and is deleted`() async throws {
        for version in ["1", "2"] {
            _ = try await run(list(), ["set", "publish", "s", "-", "--version", version, "--wait"])
        }
        #expect(try await call("set", "switch", "s", "1").first?.hasPrefix("s\t1\t") == true)
        #expect(try await call("set", "show", "s").first == "set s: version 1")
        #expect(try await call("set", "rm", "s") == ["s is deleted"])
        #expect(try await failure("set", "show", "s").errors.contains("there is no such set: s"))
    }
}
