import CPage
import Core
import HTTPServer
import Wire

extension APIServer {
    /// The web page at `/`, the reference at `/docs`, and the files of both. They hold no data and need no key.
    var pageRoutes: [Route] {
        guard settings.servesPage else { return [] }
        let html = ["text/html"]
        return [
            route("GET", "/", .open, produces: html) { try $0.pageFile("index.html") },
            route("GET", "/docs", .open, produces: html) { try $0.pageFile("docs.html") },
            route("GET", "/page/{file}", .open, produces: PageFiles.types) { try $0.pageFile($0.parameter("file")) },
        ]
    }
}

extension Call {
    fileprivate func pageFile(_ name: String) throws -> HTTPResponse {
        guard let file = PageFiles.all[name] else { throw DomainError.notFound }
        return embedded(file, headers: PageFiles.headers)
    }
}

/// The files of `Sources/CPage/site`, by name.
enum PageFiles {
    static let all: [String: EmbeddedFile] = Dictionary(
        uniqueKeysWithValues: UnsafeBufferPointer(start: page_files_start(), count: page_files_count).map {
            let name = String(cString: $0.name)
            return (name, EmbeddedFile(type(of: name), $0.bytes, $0.length))
        })

    static let types = ["text/javascript", "text/css", "image/svg+xml", "text/html"]

    /// The page runs, loads and connects only to the service, cannot be framed, and sends no referrer.
    static let headers = [
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
                + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    private static func type(of name: String) -> String {
        let type =
            switch name.split(separator: ".").last {
            case "js": "text/javascript"
            case "css": "text/css"
            case "svg": "image/svg+xml"
            default: "text/html"
            }
        return type + "; charset=utf-8"
    }
}
