import Glibc
import Testing

@testable import Core

@Suite struct FileNameTests {
    @Test(
        arguments: [
            ("attachment; filename=a.txt", "a.txt"), ("attachment; filename=\"a b.txt\"", "a b.txt"),
            ("inline;filename=\"a\\\"b.txt\"", "a\"b.txt"), ("attachment; FileName = x ", "x"),
            ("attachment; filename=\"old.txt\"; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
            ("attachment; filename*=iso-8859-1'en'%A3.txt", "£.txt"),
            ("attachment; filename=b.txt; filename*=UTF-8''%FF", "b.txt"),
            ("attachment; filename=b.txt; filename*=koi8-r''x", "b.txt"),
            ("attachment; filename=b.txt; filename*=x", "b.txt"),
            ("attachment; filename=\"../../etc/passwd\"", "passwd"),
            ("attachment; filename=\"..\\\\..\\\\boot.ini\"", "boot.ini"),
            ("attachment; filename=\"/\"", nil), ("attachment; filename=\"..\"", nil),
            ("attachment; filename=\"a/\"", "a"),
            ("attachment; filename=\"a\u{0}b\u{7F}.txt\"", "ab.txt"),
            ("attachment; filename=\"txt\u{202E}exe.a\"", "txtexe.a"),
            ("attachment", nil), ("attachment; filename=", nil), ("attachment; filename=\"open", nil),
            ("attachment; filename=a; filename=b", "a"), ("attachment; x", nil), ("attachment; ; filename=a", "a"),
            ("attachment; filename=\" a. \"", "a"), ("attachment; filename=\".profile\"", ".profile"),
        ] as [(String, String?)])
    func `A foreign file name becomes a base name`(_ header: String, _ name: String?) {
        #expect(ContentDisposition(header)?.filename == name)
    }

    @Test func `A header without a disposition type has no file name`() {
        #expect(ContentDisposition("") == nil)
        #expect(ContentDisposition("; filename=a") == nil)
        #expect(ContentDisposition("INLINE")?.type == "inline")
    }

    @Test(arguments: ["a.txt", "naïve.txt", "a\"b\\c%.txt", "日本.pdf", " x y"])
    func `A written header reads back as the same name`(_ name: String) {
        let written = ContentDisposition(filename: name).headerValue
        #expect(written.utf8.allSatisfy { (0x20...0x7E).contains($0) })
        #expect(ContentDisposition(written)?.filename == FileName.safe(name))
    }

    @Test func `Plain names are written plainly`() {
        #expect(ContentDisposition(filename: "a b.txt").headerValue == "attachment; filename=\"a b.txt\"")
        #expect(
            ContentDisposition(filename: "ä").headerValue == "attachment; filename=\"__\"; filename*=UTF-8''%C3%A4")
        #expect(ContentDisposition(type: "inline", filename: nil).headerValue == "inline")
    }

    @Test func `Long names keep their extension, and no character is split`() throws {
        for head in 0..<4 {
            let long = String(repeating: "a", count: head) + String(repeating: "日", count: 200) + ".tar.gz"
            let safe = try #require(FileName.safe(long))
            #expect(safe.utf8.count <= 255 && safe.utf8.count > 250)
            #expect(safe.hasSuffix("日.gz") || safe.hasSuffix("日.tar.gz"))
            #expect(!safe.unicodeScalars.contains("\u{FFFD}"))
        }
        #expect(FileName.safe(String(repeating: "x", count: 10_240))?.utf8.count == 255)
        #expect(FileName.safe("a." + String(repeating: "x", count: 300))?.utf8.count == 255)
        let cut = String(repeating: "a", count: 253)
        #expect(FileName.safe(cut + ". " + String(repeating: "x", count: 20)) == cut)
    }

    @Test func `A field full of spaces costs no more than others`() {
        func seconds(_ name: String) -> Double {
            func now() -> Double {
                var time = timespec()
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
                return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
            }
            let began = now()
            #expect(FileName.safe(name)?.utf8.last == 0x78)
            return now() - began
        }
        let count = 500_000
        let plain = seconds(String(repeating: "é", count: count) + ".x")
        #expect(seconds(String(repeating: " ", count: count) + "x") < 5 * plain)
    }

    @Test(
        arguments: [
            ("https://a.example/dir/file.bin?x=1#y", nil, nil, "file.bin"),
            ("https://a.example/na%C3%AFve", nil, nil, "naïve"),
            ("https://a.example/report", "application/pdf; v=1", nil, "report.pdf"),
            ("https://a.example/report.cgi", "application/pdf", nil, "report.cgi"),
            ("https://a.example/", "text/html", nil, "a.example.html"),
            ("https://user@a.example:80", nil, nil, "a.example"),
            ("https://a.example/%2e%2e", "text/plain", nil, "a.example.txt"),
            ("https://a.example/x%2Fy%2", nil, nil, "y%2"),
            ("https://a.example/b", "text/plain", "attachment; filename=given", "given"), ("", nil, nil, "Unknown"),
            ("https://a.example/x", "nonsense", nil, "x"), ("https://a.example/x", "foo/bar", nil, "x"),
        ] as [(String, String?, String?, String)])
    func `Every response has a suggested file name`(_ url: String, _ type: String?, _ given: String?, _ name: String) {
        var fields = HTTPFields()
        if let type { fields.append("Content-Type", type) }
        if let given { fields.append("Content-Disposition", given) }
        #expect(FileName.suggested(url: url, fields: fields) == name)
    }

    @Test func `Media types are read with their parameters`() {
        let type = MediaType(" Text/HTML ; Charset=\"utf-8\" ;x=y")
        #expect(type?.essence == "text/html")
        #expect(type?.parameters["charset"] == "utf-8")
        #expect(type?.parameters["x"] == "y")
        for text in ["", "text", "text/", "/html", "text/html x", "a b/c"] { #expect(MediaType(text) == nil) }
    }
}
