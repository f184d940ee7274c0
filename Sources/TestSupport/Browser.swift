import Base
import Glibc

/// A Chromium without a window and with one page, controlled with the DevTools protocol over a pair of pipes. Releasing
/// the last reference kills it and removes its profile.
package final class Browser: Sendable {
    /// The browser's error for a failed command.
    package struct Refused: Error, CustomStringConvertible {
        package let description: String
    }

    private let child: ChildProcess
    /// The folder of its profile, which is also its home.
    private let folder: TemporaryFolder
    private let commands: Int32
    private let session: String
    private let wire: Wire

    /// Pending commands, and the errors of the page.
    private final class Wire: Sendable {
        struct State {
            var number = 0
            var waiting: [Int: CheckedContinuation<JSON, any Error>] = [:]
            var complaints: [String] = []
            var hasEnded = false
        }

        let state = Locked(State())
        let lock = Locked(false)
    }

    /// Starts a browser.
    ///
    /// - Parameter script: A script that runs in each document before the document's own.
    package static func start(script: String) async throws -> Browser {
        // A command to a browser that has ended is an error, and must not end the tests.
        signal(SIGPIPE, SIG_IGN)
        let folder = TemporaryFolder()
        let toBrowser = try Spawner.exclusively(Spawner.pipe)
        let fromBrowser = try Spawner.exclusively(Spawner.pipe)
        defer {
            close(toBrowser.read)
            close(fromBrowser.write)
        }
        let child = try await ChildProcess(
            [
                "/usr/lib/chromium/chromium", "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--disable-breakpad", "--disable-crash-reporter", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb",
                "--user-data-dir=\(folder.makeFolder("profile"))", "about:blank",
            ],
            environment: ["HOME=\(folder.path)", "LANG=C.UTF-8", "TZ=UTC"],
            descriptors: [3: toBrowser.read, 4: fromBrowser.write])
        let wire = Wire()
        startThread { read(fromBrowser.read, wire) }
        let browser = try await Browser(child, folder, toBrowser.write, wire)
        for domain in ["Page", "Runtime", "Log"] { try await browser.send("\(domain).enable") }
        try await browser.send("Page.addScriptToEvaluateOnNewDocument", ["source": .string(script)])
        return browser
    }

    private init(_ child: ChildProcess, _ folder: TemporaryFolder, _ commands: Int32, _ wire: Wire) async throws {
        self.child = child
        self.folder = folder
        self.commands = commands
        self.wire = wire
        let page = try await eventually("a page") {
            try await Self.send("Target.getTargets", [:], nil, commands, wire)["targetInfos"].array?
                .first { $0["type"] == "page" }
        }
        let attached = try await Self.send(
            "Target.attachToTarget", ["targetId": page["targetId"], "flatten": true], nil, commands, wire)
        session = attached["sessionId"].string ?? ""
    }

    deinit { close(commands) }

    /// The messages of console, log and uncaught errors since the last call.
    package func takeComplaints() -> [String] {
        wire.state.withLock { state in
            defer { state.complaints = [] }
            return state.complaints
        }
    }

    /// Sends a command to the page and returns its result.
    @discardableResult
    package func send(_ method: String, _ parameters: JSON = [:]) async throws -> JSON {
        try await Self.send(method, parameters, session, commands, wire)
    }

    /// The value of an expression; if it is a promise, the promise's value.
    @discardableResult
    package func evaluate(_ expression: String) async throws -> JSON {
        let answer = try await send(
            "Runtime.evaluate",
            ["expression": .string(expression), "awaitPromise": true, "returnByValue": true, "userGesture": true])
        let fault = answer["exceptionDetails"]
        guard fault.isNull else {
            throw Refused(description: "\(fault["exception"]["description"].string ?? "\(fault)") in \(expression)")
        }
        return answer["result"]["value"]
    }

    /// Presses and releases a key, such as `a` or `Escape`.
    package func press(_ key: String) async throws {
        let text = key.count == 1 ? key : key == "Enter" ? "\r" : ""
        let code = ["Enter": 13, "Escape": 27, "Tab": 9][key] ?? 0
        for type in ["keyDown", "keyUp"] {
            var event: [String: JSON] = [
                "type": .string(type), "key": .string(key), "windowsVirtualKeyCode": .integer(code),
            ]
            if type == "keyDown", !text.isEmpty { event["text"] = .string(text) }
            try await send("Input.dispatchKeyEvent", .object(event))
        }
    }

    /// Types text into the focused element.
    package func type(_ text: String) async throws { try await send("Input.insertText", ["text": .string(text)]) }

    private static func send(
        _ method: String, _ parameters: JSON, _ session: String?, _ commands: Int32, _ wire: Wire
    ) async throws -> JSON {
        let number = wire.state.withLock { state in
            state.number += 1
            return state.number
        }
        var message: [String: JSON] = [
            "id": .integer(number), "method": .string(method), "params": parameters,
        ]
        if let session { message["sessionId"] = .string(session) }
        let bytes = JSON.object(message).bytes + [0]
        let deadline = Task {
            try await Task.sleep(for: .seconds(60))
            answer(number, .failure(DeadlineExceeded(method)), wire)
        }
        defer { deadline.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            let isOpen = wire.state.withLock { state in
                if !state.hasEnded { state.waiting[number] = continuation }
                return !state.hasEnded
            }
            guard isOpen else { return continuation.resume(throwing: Refused(description: "the browser has ended")) }
            wire.lock.withLock { _ in
                var rest = bytes[...]
                while !rest.isEmpty {
                    let count = rest.withUnsafeBytes { write(commands, $0.baseAddress, $0.count) }
                    guard count > 0 else { return }
                    rest = rest.dropFirst(count)
                }
            }
        }
    }

    private static func answer(_ number: Int, _ result: Result<JSON, any Error>, _ wire: Wire) {
        wire.state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(with: result)
    }

    /// Reads messages, each of which ends with NUL, until the browser has ended.
    private static func read(_ descriptor: Int32, _ wire: Wire) {
        var rest: [UInt8] = []
        while true {
            let piece = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                count = max(0, Glibc.read(descriptor, buffer.baseAddress, buffer.count))
            }
            guard !piece.isEmpty else { break }
            let parts = (rest + piece).split(separator: 0, omittingEmptySubsequences: false)
            for part in parts.dropLast() { hear((try? JSON(parsing: Array(part))) ?? .null, wire) }
            rest = parts.last.map(Array.init) ?? []
        }
        close(descriptor)
        let waiting = wire.state.withLock { state in
            state.hasEnded = true
            defer { state.waiting = [:] }
            return state.waiting
        }
        for continuation in waiting.values { continuation.resume(throwing: Refused(description: "the browser ended")) }
    }

    private static func hear(_ message: JSON, _ wire: Wire) {
        if let number = message["id"].int {
            let error = message["error"]
            return answer(
                number, error.isNull ? .success(message["result"]) : .failure(Refused(description: "\(error)")), wire)
        }
        let told = message["params"]
        let complaint: String? =
            switch message["method"].string {
            case "Log.entryAdded": "\(told["entry"]["text"].string ?? "") \(told["entry"]["url"].string ?? "")"
            case "Runtime.exceptionThrown": "\(told["exceptionDetails"])"
            case "Runtime.consoleAPICalled": "console: \(told["args"])"
            default: nil
            }
        if let complaint { wire.state.withLock { $0.complaints.append(complaint) } }
    }
}
