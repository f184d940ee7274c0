import FoundationEssentials
import Glibc
import Synchronization
import URLSessionClient
import Wire

/// The program's output: results to standard output, all other lines to standard error.
struct Output: Sendable {
    var isJSON = false
    var isQuiet = false
    /// Whether standard output has only the bytes of a download.
    var hasContentOnStandardOutput = false

    /// Writes a line for people.
    func say(_ line: String) throws(ClientError) {
        guard !isQuiet, !isJSON else { return }
        if hasContentOnStandardOutput { return note(line) }
        try Terminal.write(Terminal.printable(line) + "\n")
    }

    /// Writes a line about progress, for people.
    func note(_ line: String) {
        guard !isQuiet else { return }
        Terminal.tell(Terminal.printable(line) + "\n")
    }

    static func complain(_ line: String) { Terminal.tell("urlsession: \(Terminal.printable(line))\n") }

    /// Writes text unchanged, such as a script.
    static func text(_ text: String) throws(ClientError) {
        try Terminal.write(text.hasSuffix("\n") ? text : text + "\n")
    }

    /// Writes a value: as JSON, or in words.
    func show<Thing: JSONWritable>(_ thing: Thing, _ words: (Thing) -> [String]) throws(ClientError) {
        guard !isQuiet else { return }
        if isJSON { return try json(thing) }
        for line in words(thing) { try say(line) }
    }

    func json(_ thing: some JSONWritable) throws(ClientError) {
        let text = thing.jsonBytes
        try Terminal.write((Terminal.isTerminal(STDOUT_FILENO) ? Terminal.harmless(text) : text) + [0x0A])
    }

    /// Writes all items of a list, from the first page to the last: as JSON with one line each, as a table on a
    /// terminal, and as columns between tabs for programs.
    func list<Item>(
        _ columns: [String], _ page: (_ cursor: String?) async throws -> Page<Item>, _ row: (Item) -> [String]
    ) async throws {
        var table = Table(columns)
        try await Client.each(page) { item in
            if isQuiet || isJSON || !Terminal.isTerminal(STDOUT_FILENO) { return try self.row(item, row) }
            table.add(row(item).map(Terminal.printable))
        }
        if !table.isEmpty { try Terminal.write(table.lines.map { $0 + "\n" }.joined()) }
    }

    /// Writes a value: as JSON, or as columns between tabs.
    func row<Thing: JSONWritable>(_ thing: Thing, _ row: (Thing) -> [String]) throws(ClientError) {
        try show(thing) { [row($0).joined(separator: "\t")] }
    }
}

struct Table {
    private var rows: [[String]]

    init(_ columns: [String]) { rows = [columns.map { $0.uppercased() }] }

    mutating func add(_ row: [String]) { rows.append(row) }

    var isEmpty: Bool { rows.count < 2 }

    var lines: [String] {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            row.enumerated().map { column, cell in
                column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
            }.joined(separator: "  ")
        }
    }
}

enum Terminal {
    static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// The columns and rows of the terminal on standard error.
    static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Whether the terminal shows more than ASCII.
    static let isUnicode: Bool = {
        let name = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap { environment($0) }.first { !$0.isEmpty } ?? ""
        return name.lowercased().replacing("-", with: "").hasSuffix("utf8")
    }()

    private static let standardOutput = "standard output"

    /// Writes a result to standard output. A closed pipe ends the process with SIGPIPE, as in any pipeline.
    ///
    /// - Throws: ``ClientError/file(_:code:)`` if it cannot be written, such as on a full disk.
    static func write(_ text: String) throws(ClientError) { try write(Array(text.utf8)) }

    static func write(_ bytes: some ContiguousBytes) throws(ClientError) {
        try write(bytes, to: STDOUT_FILENO, standardOutput)
    }

    /// Writes a message to standard error. A failure is not reported: only the exit status is left.
    static func tell(_ text: String) { try? write(Array(text.utf8), to: STDERR_FILENO, "standard error") }

    /// Writes all bytes.
    ///
    /// - Parameter name: The name of the file, for errors.
    static func write(_ bytes: some ContiguousBytes, to descriptor: Int32, _ name: String) throws(ClientError) {
        let code = bytes.withUnsafeBytes { buffer -> Int32? in
            var done = 0
            while done < buffer.count {
                let written = Glibc.write(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done)
                if written < 0, errno == EAGAIN {
                    // Another process made the shared descriptor non-blocking.
                    var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    guard poll(&room, 1, -1) >= 0 || errno == EINTR else { return errno }
                } else if written < 0, errno != EINTR {
                    return errno
                }
                done += max(written, 0)
            }
            return nil
        }
        if let code { throw .file(name, code: code) }
    }

    /// Syncs standard output, if it is a file.
    static func sync() throws(ClientError) {
        guard fsync(STDOUT_FILENO) != 0, errno != EINVAL, errno != EROFS else { return }
        throw .file(standardOutput, code: errno)
    }

    /// A foreign text without characters that control the terminal. Tabs stay.
    static func printable(_ text: String) -> String {
        let isPlain = text.unicodeScalars.allSatisfy { !isControl($0) }
        guard !isPlain else { return text }
        return String(String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "\u{FFFD}" : $0 }))
    }

    /// Equal JSON text without characters that control the terminal: they are escaped.
    static func harmless(_ json: [UInt8]) -> [UInt8] {
        let text = String(decoding: json, as: UTF8.self)
        let parts = text.unicodeScalars.map { scalar in
            guard isControl(scalar) else { return String(scalar) }
            let digits = String(scalar.value, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
        return Array(parts.joined().utf8)
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 9: false
        case 0..<0x20, 0x7F..<0xA0, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// A secret, typed without echo, or the first line of standard input.
    static func secret(_ prompt: String) -> String? {
        guard isTerminal(STDIN_FILENO) else { return readLine() }
        tell("\(prompt): ")
        var before = termios()
        tcgetattr(STDIN_FILENO, &before)
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        prompting.withLock { $0 = before }
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        defer {
            stopPrompting()
            tell("\n")
        }
        return readLine()
    }

    /// The state of the terminal before a secret is typed.
    private static let prompting = Mutex<termios?>(nil)

    /// Restores the terminal's echo.
    ///
    /// - Returns: Whether a secret was being typed.
    @discardableResult
    static func stopPrompting() -> Bool {
        prompting.withLock { before in
            guard var settings = before else { return false }
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
            before = nil
            return true
        }
    }
}

func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
