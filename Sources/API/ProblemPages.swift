import COpenAPI
import Wire

/// The section of `docs/problems.md` about one code, as Markdown and as HTML.
struct ProblemPage: Sendable {
    let code: ProblemCode
    /// The section of the code without its heading, in Markdown.
    let section: String

    var markdown: String {
        "# \(code.title)\n\n`\(code.rawValue)`\n\n" + Prose.spans(section).map(\.markdown).joined() + "\n"
    }

    var html: String {
        let paragraphs = section.split(separator: "\n\n").map { paragraph in
            "<p>\(Prose.spans(String(paragraph)).map(\.html).joined())</p>\n"
        }
        let title = Prose.escaped(code.title)
        return """
            <!doctype html>
            <html lang="en">
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width">
            <title>\(code.rawValue): \(title)</title>
            <h1>\(title)</h1>
            <p><code>\(code.rawValue)</code></p>
            \(paragraphs.joined())</html>

            """
    }
}

/// The pages of all codes, from the document that is part of the program.
enum ProblemPages {
    static let all: [String: ProblemPage] = {
        let bytes = UnsafeBufferPointer(start: problems_markdown_start(), count: problems_markdown_length)
        let sections = String(decoding: bytes, as: UTF8.self).split(separator: "\n## ").dropFirst()
        return sections.reduce(into: [:]) { pages, section in
            let name = String(section.prefix { $0 != "\n" })
            guard let code = ProblemCode.known.first(where: { $0.rawValue == name }) else { return }
            let text = section.dropFirst(name.count).drop { $0 == "\n" }
            let end = text.lastIndex { $0 != "\n" } ?? text.startIndex
            pages[name] = ProblemPage(code: code, section: String(text[...end]))
        }
    }()
}

/// The part of Markdown that the sections use: paragraphs, `code`, *emphasis* and links.
private enum Prose {
    enum Span {
        case text(String)
        case code(String)
        case emphasis(String)
        case link(label: [Span], path: String)

        var markdown: String {
            switch self {
            case .text(let text): text
            case .code(let text): "`\(text)`"
            case .emphasis(let text): "*\(text)*"
            case .link(let label, let path): "[\(label.map(\.markdown).joined())](\(path))"
            }
        }

        var html: String {
            switch self {
            case .text(let text): escaped(text)
            case .code(let text): "<code>\(escaped(text))</code>"
            case .emphasis(let text): "<em>\(escaped(text))</em>"
            case .link(let label, let path): "<a href=\"\(escaped(path))\">\(label.map(\.html).joined())</a>"
            }
        }
    }

    static func spans(_ text: String) -> [Span] {
        var spans: [Span] = []
        var plain = ""
        var rest = Substring(text)
        func end(of mark: String) -> Substring.Index? {
            rest.dropFirst().firstRange(of: mark)?.lowerBound
        }
        while let first = rest.first {
            var found: [Span]?
            if first == "`" || first == "*", let close = rest.dropFirst().firstIndex(of: first) {
                let inner = String(rest[rest.index(after: rest.startIndex)..<close])
                found = [first == "`" ? .code(inner) : .emphasis(inner)]
                rest = rest[rest.index(after: close)...]
            } else if first == "[", let middle = end(of: "]("), let close = rest[middle...].firstIndex(of: ")") {
                let label = self.spans(String(rest[rest.index(after: rest.startIndex)..<middle]))
                let target = rest[rest.index(middle, offsetBy: 2)..<close]
                // Other documents are not served.
                found = target.hasPrefix("#") ? [.link(label: label, path: "/problems/\(target.dropFirst())")] : label
                rest = rest[rest.index(after: close)...]
            }
            if let found {
                spans += (plain.isEmpty ? [] : [.text(plain)]) + found
                plain = ""
            } else {
                plain.append(first)
                rest.removeFirst()
            }
        }
        return spans + (plain.isEmpty ? [] : [.text(plain)])
    }

    static func escaped(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.append(character)
            }
        }
    }
}
