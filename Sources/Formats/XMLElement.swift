/// An element of an XML document, with its name split into namespace and local name.
package struct XMLElement: Hashable, Sendable {
    package fileprivate(set) var namespace = ""
    package fileprivate(set) var name = ""
    /// The attributes without a namespace.
    package fileprivate(set) var attributes: [String: String] = [:]
    package fileprivate(set) var children: [XMLElement] = []
    /// The character data of the element itself.
    package fileprivate(set) var text = ""

    package func all(_ name: String) -> [XMLElement] {
        children.filter { $0.name == name && $0.namespace == namespace }
    }

    package func first(_ name: String) -> XMLElement? { all(name).first }

    /// Its text without white space around it.
    package var trimmedText: String { text.trimmed }
}

/// The reason why bytes are not a supported XML document.
package struct XMLError: Error, Hashable, Sendable {
    /// The offset in bytes from the beginning.
    package let offset: Int
    package let detail: String
}

extension XMLElement {
    /// Reads a whole document (XML 1.0 with namespaces) in UTF-8 and returns its root.
    ///
    /// Document types are refused, so that only the five predefined entities exist and no external one. The running
    /// time is linear in the length: an element has at most 64 attributes, and at most 64 namespace declarations are in
    /// scope.
    package init(parsing bytes: [UInt8]) throws(XMLError) {
        var parser = XMLParser(bytes)
        self = try parser.document()
    }
}

private struct XMLParser {
    private static let maximumDepth = 32
    private static let maximumElements = 100_000
    private static let maximumAttributes = 64
    private static let maximumDeclarations = 64
    private static let maximumDeclarationLength = 256

    private static let entities: [String: [UInt8]] = [
        "lt": [0x3C], "gt": [0x3E], "amp": [0x26], "apos": [0x27], "quot": [0x22],
    ]

    private let bytes: [UInt8]
    private var position = 0
    private var elements = 0
    /// The namespaces of prefixes, with the innermost element's last. The empty prefix is for names without one.
    private var scope = [
        (prefix: "", namespace: ""), (prefix: "xml", namespace: "http://www.w3.org/XML/1998/namespace"),
    ]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func document() throws(XMLError) -> XMLElement {
        guard String(validating: bytes, as: UTF8.self) != nil else { throw fault("This is not UTF-8.") }
        _ = skip("\u{FEFF}")
        if skip("<?xml") { try declaration() }
        try skipMiscellany()
        let root = try element(depth: 1)
        try skipMiscellany()
        guard position == bytes.count else { throw fault("Text follows the root element.") }
        return root
    }

    // MARK: Markup

    private mutating func declaration() throws(XMLError) {
        let text = try upTo("?>", "The XML declaration has no end.")
        guard text.utf8.count <= Self.maximumDeclarationLength else { throw fault("The XML declaration is too long.") }
        let parts = text.split { "\"'= \t\r\n".contains($0) }
        guard let index = parts.firstIndex(of: "encoding") else { return }
        let name = parts.dropFirst(index + 1).first ?? ""
        guard name == "UTF-8" || name == "utf-8" else { throw fault("Only UTF-8 is supported.") }
    }

    /// Skips white space, comments and processing instructions.
    private mutating func skipMiscellany() throws(XMLError) {
        while true {
            skipSpace()
            if skip("<!--") {
                try comment()
            } else if skip("<?") {
                _ = try upTo("?>", "A processing instruction has no end.")
            } else {
                if peek("<!DOCTYPE") { throw fault("A document type is not allowed.") }
                return
            }
        }
    }

    private mutating func comment() throws(XMLError) { _ = try upTo("-->", "A comment has no end.") }

    private mutating func element(depth: Int) throws(XMLError) -> XMLElement {
        guard depth <= Self.maximumDepth else { throw fault("Elements are nested too deep.") }
        elements += 1
        guard elements <= Self.maximumElements else { throw fault("There are too many elements.") }
        guard skip("<") else { throw fault("An element is missing.") }
        let tag = try name()
        let (attributes, isEmpty) = try attributes()
        let outer = scope.count
        defer { scope.removeLast(scope.count - outer) }
        try declare(attributes)
        var element = XMLElement()
        (element.namespace, element.name) = try resolve(tag)
        element.attributes = attributes.filter { !$0.key.utf8.contains(0x3A) && $0.key != "xmlns" }
        if !isEmpty { try content(of: &element, tag, depth) }
        return element
    }

    private mutating func content(of element: inout XMLElement, _ tag: String, _ depth: Int) throws(XMLError) {
        while true {
            if skip("</") {
                guard try name() == tag else { throw fault("An end tag has no start tag.") }
                skipSpace()
                guard skip(">") else { throw fault("An end tag has no end.") }
                return
            } else if skip("<!--") {
                try comment()
            } else if skip("<![CDATA[") {
                element.text += try upTo("]]>", "A CDATA section has no end.")
            } else if skip("<?") {
                _ = try upTo("?>", "A processing instruction has no end.")
            } else if peek("<") {
                element.children.append(try self.element(depth: depth + 1))
            } else {
                element.text += try text(until: [0x3C])
            }
        }
    }

    /// The attributes of a start tag, and whether the element is empty.
    private mutating func attributes() throws(XMLError) -> (found: [String: String], isEmpty: Bool) {
        var found: [String: String] = [:]
        while true {
            let hadSpace = skipSpace()
            if skip("/>") { return (found, true) }
            if skip(">") { return (found, false) }
            guard hadSpace else { throw fault("A start tag is not well-formed.") }
            guard found.count < Self.maximumAttributes else { throw fault("An element has too many attributes.") }
            let name = try name()
            guard found[name] == nil else { throw fault("An attribute occurs twice.") }
            skipSpace()
            guard skip("=") else { throw fault("An attribute has no value.") }
            skipSpace()
            guard position < bytes.count, [0x22, 0x27].contains(bytes[position]) else {
                throw fault("An attribute's value has no quotes.")
            }
            let quote = bytes[position]
            position += 1
            let value = try text(until: [quote, 0x3C])
            guard position < bytes.count, bytes[position] == quote else { throw fault("An attribute has no end.") }
            position += 1
            found[name] = value
        }
    }

    // MARK: Names

    private mutating func declare(_ attributes: [String: String]) throws(XMLError) {
        for (name, value) in attributes {
            if name == "xmlns" {
                scope.append(("", value))
            } else if name.hasPrefix("xmlns:") {
                guard !value.isEmpty else { throw fault("A prefix has no namespace.") }
                scope.append((String(name.dropFirst(6)), value))
            }
        }
        guard scope.count <= Self.maximumDeclarations else { throw fault("Too many namespaces are declared.") }
    }

    private func resolve(_ tag: String) throws(XMLError) -> (namespace: String, name: String) {
        let parts = tag.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let (prefix, name) = parts.count == 2 ? (parts[0], parts[1]) : ("", parts[0])
        guard let namespace = scope.last(where: { $0.prefix == prefix })?.namespace else {
            throw fault("A prefix is not declared.")
        }
        guard let first = name.utf8.first, beginsName(first), !name.utf8.contains(0x3A) else {
            throw fault("A name is missing behind a prefix.")
        }
        return (namespace, name)
    }

    private mutating func name() throws(XMLError) -> String {
        let start = position
        while position < bytes.count, isNameByte(bytes[position]) { position += 1 }
        guard position > start, beginsName(bytes[start]) else { throw fault("A name is missing.") }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private func beginsName(_ byte: UInt8) -> Bool { isNameByte(byte) && !"-.:0123456789".utf8.contains(byte) }

    private func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F, 0x3A, 0x2D, 0x2E, 0x80...: true
        default: false
        }
    }

    // MARK: Text

    /// The character data before the first of these bytes, with references resolved.
    private mutating func text(until ends: [UInt8]) throws(XMLError) -> String {
        var result: [UInt8] = []
        while position < bytes.count, !ends.contains(bytes[position]) {
            let byte = bytes[position]
            if byte == 0x26 {
                result += try reference()
                continue
            }
            guard byte >= 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D else {
                throw fault("A control character is not allowed.")
            }
            result.append(byte)
            position += 1
        }
        guard position < bytes.count else { throw fault("The document ends too early.") }
        return String(decoding: result, as: UTF8.self)
    }

    private mutating func reference() throws(XMLError) -> [UInt8] {
        let start = position
        position += 1
        guard let end = bytes[position...].prefix(12).firstIndex(of: 0x3B) else {
            throw XMLError(offset: start, detail: "A reference has no end.")
        }
        let body = String(decoding: bytes[position..<end], as: UTF8.self)
        position = end + 1
        if let known = Self.entities[body] { return known }
        guard let number = Self.number(body), number >= 0x20 || [0x09, 0x0A, 0x0D].contains(number),
            let scalar = Unicode.Scalar(number)
        else { throw XMLError(offset: start, detail: "There is no such entity.") }
        return Array(String(scalar).utf8)
    }

    /// The number of a character reference, without `&` and `;`.
    private static func number(_ body: String) -> UInt32? {
        // A sign is no digit, and would be read.
        guard !body.utf8.contains(UInt8(ascii: "+")) else { return nil }
        if body.hasPrefix("#x") { return UInt32(body.dropFirst(2), radix: 16) }
        return body.hasPrefix("#") ? UInt32(body.dropFirst()) : nil
    }

    private mutating func upTo(_ end: String, _ detail: String) throws(XMLError) -> String {
        let start = position
        let pattern = Array(end.utf8)
        while position + pattern.count <= bytes.count {
            if bytes[position] == pattern[0], bytes[position..<(position + pattern.count)].elementsEqual(pattern) {
                defer { position += pattern.count }
                return String(decoding: bytes[start..<position], as: UTF8.self)
            }
            position += 1
        }
        throw XMLError(offset: start, detail: detail)
    }

    @discardableResult
    private mutating func skipSpace() -> Bool {
        let start = position
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
        return position > start
    }

    private func peek(_ text: String) -> Bool {
        bytes.count - position >= text.utf8.count && bytes[position...].prefix(text.utf8.count).elementsEqual(text.utf8)
    }

    private mutating func skip(_ text: String) -> Bool {
        guard peek(text) else { return false }
        position += text.utf8.count
        return true
    }

    private func fault(_ detail: String) -> XMLError { XMLError(offset: position, detail: detail) }
}
