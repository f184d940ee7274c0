import Foundation
import TestSupport
import Testing
import URLSessionClient

/// The client covers the whole API.
struct ReachTests {
    /// One operation of the description.
    struct Operation: Hashable, CustomStringConvertible {
        let method: String
        let path: String
        let identifier: String
        var description: String { identifier }

        /// Whether a request belongs to the operation.
        func takes(_ method: String, _ target: String) -> Bool {
            let pattern = path.split(separator: "/")
            let segments = target.prefix { $0 != "?" }.split(separator: "/")
            return method == self.method && pattern.count == segments.count
                && zip(pattern, segments).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
        }
    }

    /// The operations of openapi.yaml, without the calls that the service makes and the page's files.
    static func operations() throws -> [Operation] {
        let text = String(decoding: try #require(readFile("\(repository)/openapi.yaml")), as: UTF8.self)
        var (found, path, method): ([Operation], String, String) = ([], "", "")
        for line in text.split(separator: "\n").prefix(while: { $0 != "webhooks:" }) {
            let word = line.trimmingCharacters(in: .whitespaces)
            if line.hasPrefix("  /") { path = String(word.dropLast()) }
            if line.hasPrefix("    "), !line.hasPrefix("     "), word.hasSuffix(":") {
                method = word.dropLast().uppercased()
            }
            // Deeper ones belong to links.
            guard line.hasPrefix("      operationId: "), !forPeople.contains(path) else { continue }
            found.append(
                Operation(method: method, path: path, identifier: String(word.dropFirst("operationId: ".count))))
        }
        return found
    }

    /// Pages and indexes for people, which programs do not call.
    private static let forPeople: Set = ["/", "/docs", "/page/{file}", "/v1", "/problems/{code}"]

    @Test func `Every operation of the description can be called`() async throws {
        // After a temporarily refused append the client queries the offset.
        var busy = Receiver.Answer.json(["code": "shutting-down", "status": 503])
        busy.status = 503
        let receiver = try Receiver { [busy] in $0.method == "PATCH" ? busy : .json(["id": "body_1"]) }
        let client = Client(url: try #require(URL(string: "http://127.0.0.1:\(receiver.port)")), key: "k")
        try await Self.callAll(client)
        let requests = receiver.deliveries
        let operations = try Self.operations()
        #expect(operations.count > 50)
        let missing = operations.filter { operation in
            !requests.contains { operation.takes($0.method, $0.target) }
        }
        #expect(missing.isEmpty, "no call for \(missing)")
        let strangers = requests.filter { request in
            !operations.contains { $0.takes(request.method, request.target) }
        }
        #expect(strangers.isEmpty, "\(strangers.map { "\($0.method) \($0.target)" })")
    }

    /// Calls every method; the responses do not matter.
    static func callAll(_ client: Client) async throws {
        func call(_ body: () async throws -> Void) async { try? await body() }
        let folder = TemporaryFolder()
        let large = folder.write([UInt8](repeating: 0, count: 5 << 20), to: "large")

        await call { _ = try await client.apps() }
        await call { _ = try await client.createApp(AppCreation(identifier: "a")) }
        await call { _ = try await client.app("a") }
        await call { _ = try await client.change(AppChange(), ofApp: "a") }
        await call { try await client.deleteApp("a") }
        await call { _ = try await client.keys(ofApp: "a") }
        await call { _ = try await client.createKey(ofApp: "a") }
        await call { try await client.deleteKey("k", ofApp: "a") }
        await call { _ = try await client.app() }
        await call { _ = try await client.cacheUsage() }
        await call { try await client.emptyCache() }
        await call { _ = try await client.changeWebhook(WebhookChange()) }
        await call { _ = try await client.pingWebhook() }
        await call { _ = try await client.rotateWebhookSecret() }
        await call { try await client.revokePreviousWebhookSecrets() }
        await call { _ = try await client.forceQuit() }
        await call { _ = try await client.activate() }
        await call { _ = try await client.backgroundRefresh() }
        await call { _ = try await client.setMinimumBackgroundFetchInterval(.minimum) }
        await call { _ = try await client.simulateFetch() }

        await call { _ = try await client.sessions() }
        await call { _ = try await client.createSession() }
        await call { _ = try await client.session("s") }
        await call { _ = try await client.openSession("s") }
        await call { _ = try await client.change(SessionChange(), ofSession: "s") }
        await call { try await client.deleteSession("s") }
        await call { _ = try await client.finishTasksAndInvalidate("s") }
        await call { _ = try await client.invalidateAndCancel("s") }
        await call { _ = try await client.resetSession("s") }
        await call { _ = try await client.attach(to: "s") }
        await call { try await client.detach(1, from: "s") }
        await call { _ = try await client.eventPage(of: "s") }
        await call { try await client.acknowledge(through: 1, in: "s") }

        await call { _ = try await client.tasks(in: "s") }
        await call { _ = try await client.tasks() }
        await call { _ = try await client.createTask(.download(TransferRequest(url: "http://a/")), in: "s") }
        await call { _ = try await client.createEach([.download(TransferRequest(url: "http://a/"))], in: "s") }
        await call { _ = try await client.createTask(metalink: [], in: "s") }
        await call { _ = try await client.createTasks([], in: "s") }
        await call { _ = try await client.task(1, in: "s") }
        await call { _ = try await client.change(TaskChange(), ofTask: 1, in: "s") }
        for command in Client.Command.allCases {
            await call { _ = try await client.command(command, task: 1, in: "s") }
            await call { _ = try await client.command(command, in: "s") }
        }
        await call { _ = try await client.cancelByProducingResumeData(1, in: "s") }
        await call { _ = try await client.content(ofTask: 1, in: "s") }
        await call { _ = try await client.saveContent(of: Event(), in: folder.path) }
        await call { _ = try await client.claimContent(ofTask: 1, in: "s") }
        await call { _ = try await client.claimContents(in: "s") }

        await call { _ = try await client.sets() }
        await call { _ = try await client.putSet("n") }
        await call { _ = try await client.set("n") }
        await call { try await client.deleteSet("n") }
        await call { _ = try await client.versions(ofSet: "n") }
        let file = SetVersionFile("a/b", TransferRequest(url: "http://a/"))
        await call { _ = try await client.createVersion(SetVersionCreation(session: "s", files: [file]), ofSet: "n") }
        await call { _ = try await client.createVersion(SetVersionHead(session: "s"), files: [file], ofSet: "n") }
        await call { _ = try await client.version("v", ofSet: "n") }
        await call { _ = try await client.retryVersion("v", ofSet: "n") }
        await call { _ = try await client.cancelVersion("v", ofSet: "n") }
        await call { _ = try await client.switchSet("n", to: "v") }
        await call { _ = try await client.manifest(ofSet: "n") }
        await call { _ = try await client.manifest(ofSet: "n", version: "v") }
        await call { _ = try await client.currentFile("a/b", ofSet: "n") }
        await call { try await client.file("a/b", ofSet: "n", version: "v") { _ in } }

        await call { _ = try await client.launches() }
        await call { _ = try await client.launch("l") }
        await call { _ = try await client.completeLaunch("l") }
        await call { _ = try await client.completeFetch("l", result: .noData) }
        await call { _ = try await client.redeliverLaunch("l") }
        await call { _ = try await client.redeliverLaunches(LaunchSelection(createdAfter: "2026-12-01T00:00:00Z")) }
        await call { _ = try await client.questions() }
        await call { _ = try await client.question("q") }
        await call { _ = try await client.answer(Answer(.cancel), to: "q") }
        await call { _ = try await client.credentials() }
        let space = ProtectionSpace(host: "a", port: 80, protocol: "http", authenticationMethod: .basic)
        await call { _ = try await client.storeCredential(Credential(.token("t")), for: space) }
        await call { _ = try await client.credential("c") }
        await call { try await client.deleteCredential("c") }
        await call { try await client.deleteCredentials(ofHost: "a", port: 80) }

        await call { _ = try await client.bodies() }
        await call { _ = try await client.storeBody([1]) }
        await call { _ = try await client.storeBody(fileAt: large) }
        await call { _ = try await client.body("body_1") }
        await call { try await client.deleteBody("body_1") }
        await call { _ = try await client.conditions() }
        await call { _ = try await client.setConditions(Conditions()) }
        await call { _ = try await client.nodes() }
        await call { _ = try await client.drainNode("n") }
        await call { _ = try await client.metrics() }
        await call { _ = try await client.apiDescription() }
        await call { _ = try await client.apiDescription(asJSON: true) }
        _ = await (client.isAlive(), client.isReady())
    }
}
