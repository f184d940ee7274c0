import Core
import TestSupport
import Testing

/// docs/transfers.md "Egress": no byte reaches a forbidden address, however it is spelled, by transfer or webhook.
// The services run in a network of their own, without servers of other tests.
@Suite(.enabled(if: !TestStore.isOnServer)) struct EgressTests {
    private typealias Verdict = Spelling.Verdict

    /// A URL to try, and the expected result of its task.
    private struct Trial {
        let what: String
        let url: String
        let verdict: Verdict
        var session = "s"
    }

    /// Names of the test's name server, besides one for each row of the table.
    private static let names: [String: JSON] = [
        "public.test": ["8.8.8.8", "2606:4700::1"],
        "127.0.0.1.nip.test": ["127.0.0.1"], "7f000001.nip.test": ["127.0.0.1"], "a.localhost": ["127.0.0.1"],
        "metadata.google.internal": ["169.254.169.254"], "instance-data": ["169.254.169.254"],
        "last.test": ["8.8.8.8", "9.9.9.9", "10.0.0.1"], "first.test": ["10.0.0.1", "8.8.8.8"],
        "both.test": ["8.8.8.8", "::1"], "other.test": ["2606:4700::1", "127.0.0.1"],
        "alias.test": ["=first.test"], "alias.public.test": ["=n0.test"],
        "turning.test": ["first": ["8.8.4.4"], "then": ["127.0.0.1"]],
    ]

    /// Names with several addresses or an alias: one forbidden address refuses all.
    private static let mixed = [
        "last.test", "first.test", "both.test", "other.test", "alias.test", "alias.public.test",
    ]

    /// Controls that must reach the trap, to show that the others could.
    private static let controls = ["8.8.8.8", "public.test", "[2606:4700::1]", "turning.test"]

    @Test(.enabled("a network of one's own is needed (unshare -rmn, ip, python3)") { await Island.canBeHad() })
    func `No spelling of a forbidden address receives a byte, by task, redirect, name, proxy or webhook`() async throws
    {
        let spellings = try Spelling.all()
        try #require(spellings.count >= 200 && Set(spellings.map(\.text)).count == spellings.count)
        var names = Self.names
        for (index, spelling) in spellings.enumerated() { names["n\(index).test"] = [.string(spelling.address)] }
        let island = try await Island(places: spellings.map { $0.url() }, names: names)
        let app = try await island.admin.post("/v1/apps", ["identifier": "a"])
        let key: String = try #require(app.json["apiKey"].string, "\(app.text)")
        let api = island.admin.with(key: key)

        try await makeSessions(api)
        try await run(trials(spellings), api)
        try await tryWebhooks(spellings, api)
        let forbidden = island.arrivals
        #expect(forbidden == [])
        // The operator's log has the address.
        let log = island.service.errors
        for spelling in spellings where !spelling.address.contains(":") {
            #expect(log.contains("\"address\":\"\(spelling.address)\""), "\(spelling.address)")
        }

        // Allowed connections arrive: the trap records them.
        let open = Self.controls.map {
            Trial(what: "control", url: "http://\($0):\(Island.trapPort)/", verdict: .error(0))
        }
        try await run(open, api)
        expect(try await api.patch("/v1/app", ["webhook": ["url": "https://public.test:\(Island.trapPort)/"]]), 200)
        expect(try await api.post("/v1/app/webhook/ping"), 200)
        let arrivals = try await eventually("the controls arrive") {
            let arrivals = island.arrivals
            return arrivals.count >= Self.controls.count + 1 ? arrivals : nil
        }
        #expect(arrivals.allSatisfy { $0.bytes > 0 && $0.port == Island.trapPort }, "\(arrivals)")
        #expect(Set(arrivals.map(\.address)).isSubset(of: ["8.8.8.8", "2606:4700::1", "8.8.4.4"]), "\(arrivals)")
        #expect(try await island.service.terminate() == .exited(0))
        print(
            "egress: \(spellings.count) spellings, direct, redirected, by name, behind a proxy and as webhooks: "
                + "\(forbidden.count) connections, \(forbidden.reduce(0) { $0 + $1.bytes }) bytes")
    }

    @Test(.enabled("an address besides loopback is needed") { addressOfInterface() != nil })
    func `If the service listens on every address, no address of the machine leads to it`() async throws {
        let address = try #require(addressOfInterface())
        let service = try await ServiceProcess(
            [
                "--listen", "0.0.0.0:0", "--public-url", "https://service.test", "--allow-egress",
                "127.0.0.0/8,\(CIDR(address, 8))",
            ], dev: false)
        let adminKey = try #require(readFile(service.data.file("data/admin.key")))
        let admin = service.api.with(key: String(decoding: adminKey, as: UTF8.self).filter { !$0.isNewline })
        let app = try await admin.post("/v1/apps", ["identifier": "a"])
        let key: String = try #require(app.json["apiKey"].string, "\(app.text)")
        let api = service.api.with(key: key)
        expect(try await api.put("/v1/sessions/s"), 201)
        for host in ["127.0.0.1", "\(address)"] {
            let request: JSON = ["url": .string("http://\(host):\(service.port)/healthz")]
            let made = try await api.post("/v1/sessions/s/tasks", ["kind": "download", "request": request])
            let number = try #require(made.json["taskIdentifier"].int, "\(made.text)")
            let task = try await api.get("/v1/sessions/s/tasks/\(number)?wait=20").json
            #expect(task["error"]["code"] == -1022 && task["error"]["policy"] == "egress", "\(host): \(task)")
        }
    }

    private func trials(_ spellings: [Spelling]) -> [Trial] {
        var trials: [Trial] = []
        for (index, spelling) in spellings.enumerated() {
            trials.append(Trial(what: spelling.text, url: spelling.url(), verdict: spelling.direct))
            trials.append(
                Trial(
                    what: "redirect to \(spelling.text)", url: "http://\(Island.redirector)/\(index)",
                    verdict: spelling.redirected))
            trials.append(
                Trial(
                    what: "name of \(spelling.address)", url: "http://n\(index).test:\(Island.trapPort)/",
                    verdict: .egress))
            guard spelling.isLiteral, spelling.direct == .egress else { continue }
            trials.append(
                Trial(
                    what: "\(spelling.text) behind a proxy", url: spelling.url(), verdict: .egress, session: "proxied"))
        }
        trials += Self.mixed.map {
            Trial(what: $0, url: "http://\($0):\(Island.trapPort)/", verdict: .egress)
        }
        trials += Self.proxies.indices.map {
            Trial(
                what: "behind \(Self.proxies[$0])", url: "http://public.test:\(Island.trapPort)/", verdict: .egress,
                session: "p\($0)")
        }
        return trials
    }

    // MARK: Tasks

    /// Proxies at forbidden addresses.
    private static let proxies: [JSON] = [
        ["type": "http", "host": "127.0.0.1"], ["type": "http", "host": "2130706433"],
        ["type": "https", "host": "localhost"], ["type": "http", "host": "0x7f.1"], ["type": "socks5", "host": "::1"],
        ["type": "socks5h", "host": "10.0.0.1"], ["type": "http", "host": "n0.test"],
        ["type": "socks5h", "host": "both.test"], ["type": "socks5", "host": "169.254.169.254"],
        ["type": "http", "host": "::ffff:127.0.0.1"],
    ]

    private func makeSessions(_ api: APIClient) async throws {
        let retry: JSON = ["statusCodes": [], "maximumAttempts": 1, "initialDelay": 0.1, "maximumDelay": 0.1]
        func make(_ name: String, _ more: [String: JSON] = [:]) async throws {
            var configuration: [String: JSON] = ["retryPolicy": retry, "httpMaximumConnectionsPerHost": 32]
            configuration.merge(more) { _, new in new }
            expect(try await api.put("/v1/sessions/\(name)", ["configuration": .object(configuration)]), 201)
        }
        try await make("s")
        try await make("proxied", ["proxy": ["type": "http", "host": "203.0.113.200", "port": 8080]])
        for (index, proxy) in Self.proxies.enumerated() {
            var proxy = proxy
            proxy["port"] = .integer(Island.trapPort)
            try await make("p\(index)", ["proxy": proxy])
        }
    }

    /// Creates all tasks, waits for their ends, and compares each with its verdict.
    private func run(_ trials: [Trial], _ api: APIClient) async throws {
        var texts: Set<String> = []
        for (session, trials) in Dictionary(grouping: trials, by: \.session) {
            let lines = trials.map { trial -> String in
                (["kind": "download", "request": ["url": .string(trial.url)]] as JSON).description + "\n"
            }
            let answer = try await api.send(
                "POST", "/v1/sessions/\(session)/tasks", headers: [("Content-Type", "application/x-ndjson")],
                body: Array(lines.joined().utf8))
            expect(answer, 200)
            let results = try answer.text.split(separator: "\n").map { try JSON(parsing: String($0)) }
            try #require(results.count == trials.count, "\(answer.text.prefix(500))")
            try await eventually("all tasks of \(session) end", within: .seconds(60)) {
                let counts = try await api.get("/v1/sessions/\(session)").json["taskCounts"]
                return counts["running"] == 0
            }
            let (tasks, attempts) = try await outcome(of: session, api)
            for (trial, result) in zip(trials, results) {
                let number = result["taskIdentifier"].int
                #expect((result["status"] == 422) == (trial.verdict == .unusable), "\(trial.what): \(result)")
                guard let number, let task = tasks[number] else { continue }
                check(task, trial)
                guard trial.verdict == .egress else { continue }
                texts.insert(task["error"]["localizedDescription"].string ?? "")
                let last = attempts[number]?["transactionMetrics"].array?.last ?? .null
                texts.insert("metrics: " + (last["error"].string ?? "none"))
                #expect(last["remoteAddress"].isNull && last["connectStartDate"].isNull, "\(trial.what): \(last)")
            }
        }
        // The texts distinguish neither refused addresses nor reasons.
        #expect(texts.count <= 2, "\(texts)")
    }

    private func check(_ task: JSON, _ trial: Trial) {
        let error = task["error"]
        switch trial.verdict {
        case .egress:
            #expect(
                task["outcome"] == "failed" && error["code"] == -1022 && error["policy"] == "egress"
                    && error["underlying"].isNull, "\(trial.what): \(task["outcome"]) \(error)")
        case .error(0): #expect(task["outcome"] == "succeeded", "\(trial.what): \(error)")
        case .error(let code):
            #expect(task["outcome"] == "failed" && error["code"].int == code, "\(trial.what): \(error)")
        case .unusable: Issue.record("\(trial.what) became a task")
        }
    }

    /// The tasks of a session and the metrics of their attempts, by task identifier.
    private func outcome(of session: String, _ api: APIClient) async throws -> ([Int: JSON], [Int: JSON]) {
        var tasks: [Int: JSON] = [:]
        var cursor = ""
        while true {
            let page = try await api.get("/v1/sessions/\(session)/tasks?limit=1000\(cursor)").json
            for task in page["items"].array ?? [] { tasks[task["taskIdentifier"].int ?? 0] = task }
            guard let next = page["nextCursor"].string else { break }
            cursor = "&cursor=\(next)"
        }
        var metrics: [Int: JSON] = [:]
        var last = 0
        while true {
            let page = try await api.get("/v1/sessions/\(session)/events?after=\(last)&limit=1000").json
            for event in page["items"].array ?? [] {
                last = event["seq"].int ?? last
                guard event["type"] == "task.didFinishCollectingMetrics" else { continue }
                metrics[event["taskIdentifier"].int ?? 0] = event["data"]
            }
            guard last < page["lastSeq"].int ?? 0 else { return (tasks, metrics) }
        }
    }

    // MARK: Webhooks

    /// Names that have to be resolved: all other spellings are refused when the webhook is set.
    private static let lookedUp: Set<String> = [
        "ip6-localhost", "127.0.0.1.nip.test", "7f000001.nip.test", "metadata.google.internal", "instance-data",
    ]

    /// Sets each spelling as the webhook, by https and by http, directly and by name, and pings the accepted ones.
    private func tryWebhooks(_ spellings: [Spelling], _ api: APIClient) async throws {
        var texts: Set<String> = []
        func ping(_ url: String, _ what: String, _ verdict: Verdict, isLookedUp: Bool = true) async throws {
            let change = try await api.patch("/v1/app", ["webhook": ["url": .string(url)]])
            let isRefused = verdict == .unusable || verdict == .egress && !isLookedUp
            #expect(change.status == (isRefused ? 422 : 200), "\(what): \(change.text)")
            #expect(
                change.text.contains("--allow-egress") == (isRefused && verdict == .egress), "\(what): \(change.text)")
            guard change.status == 200 else { return }
            let answer = try await api.post("/v1/app/webhook/ping")
            expect(answer, 200)
            let error = answer.json["error"].string
            #expect(error != nil && answer.json["statusCode"].isNull, "\(what): \(answer.text)")
            if verdict == .egress { texts.insert(error ?? "") }
        }
        for (index, spelling) in spellings.enumerated() {
            for scheme in ["https", "http"] {
                try await ping(
                    spelling.url(scheme), "webhook \(scheme) \(spelling.text)", spelling.direct,
                    isLookedUp: Self.lookedUp.contains(spelling.text))
            }
            try await ping(
                "https://n\(index).test:\(Island.trapPort)/", "webhook at a name of \(spelling.address)", .egress)
        }
        #expect(texts.count == 1, "\(texts)")
    }
}
