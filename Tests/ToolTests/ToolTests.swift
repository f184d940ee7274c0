import Options
import Testing
import Wire

@testable import urlsession

/// The parts of `urlsession` that need no service.
struct ToolTests {
    private func parse(_ line: String) throws -> CallWords {
        guard case .run(let words) = try CallWords.parse(line.split(separator: " ").map(String.init)) else {
            throw CallWords.Fault(text: "nothing to run")
        }
        return words
    }

    // MARK: Words of a call

    @Test func `Options may precede, separate and follow arguments`() throws {
        let words = try parse("--json get -o a --header A:1 u -H B:2 --priority=0.25 v")
        #expect(words.command.name == "get" && words.flag("json") && !words.flag("force"))
        #expect(words.text("output") == "a" && words.texts("header") == ["A:1", "B:2"])
        #expect(words.text("priority") == "0.25" && words.texts("URL") == ["u", "v"])
        #expect(try parse("get -qf -oa u").text("output") == "a")
        let short = try parse("get -qf u")
        #expect(short.flag("force") && short.flag("quiet"))
        #expect(try parse("get -- -u").texts("URL") == ["-u"])
        #expect(try parse("get -o - u").text("output") == "-")
    }

    @Test func `Commands of two words are found`() throws {
        #expect(try parse("webhook").command.name == "webhook")
        #expect(try parse("webhook set u").command.name == "webhook set")
        #expect(try parse("credentials").command.name == "credentials")
    }

    @Test(arguments: [
        ("get u --nothing", "there is no option --nothing"),
        ("get u -z", "there is no option -z"),
        ("get u -o", "--output needs a value, PATH"),
        ("get u --force=1", "--force has no value"),
        ("get u -o a -o b", "--output is given twice"),
        ("get u --priority 2", "--priority must be a number from 0 to 1: 2"),
        (
            "get u --segments 17",
            "--segments must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, auto: 17"
        ),
        ("task s", "TASK is missing"),
        ("task s x", "TASK must be a whole number, from 1: x"),
        ("task s 1 2", "2 is one word too many"),
        ("answer q perhaps", nil),
        ("gett u", "there is no command gett; did you mean get?"),
        ("xyzzy", "there is no command xyzzy"),
        ("webhook sett u", "there is no command webhook sett; did you mean webhook set?"),
        ("webhook rotate --grace soon", "--grace must be a time such as 90, 30s, 5m or 24h: soon"),
        ("get u --tries 0", "--tries must be a whole number, 1 to 1000000: 0"),
        ("get u -j x", "--connections must be a whole number, 1 to 10000: x"),
        ("put f u --limit-rate 2X", "--limit-rate must be bytes per second such as 500k, 2M or 1G: 2X"),
        ("put f u --limit-rate 0", "--limit-rate must be bytes per second such as 500k, 2M or 1G: 0"),
        ("apps set a --max-tasks some", "--max-tasks must be a whole number, from 0, or none: some"),
    ])
    func `Wrong calls are named`(_ line: String, _ text: String?) throws {
        let fault = try #require(throws: CallWords.Fault.self) { try parse(line) }
        if let text { #expect(fault.text == text) }
    }

    @Test(arguments: [
        ("1", 1), ("500k", 512_000), ("500K", 512_000), ("1.5M", 1_572_864), ("1g", 1_073_741_824),
        ("0", 0), ("2T", 2_199_023_255_552),
    ])
    func `Rates are read as curl reads them`(_ text: String, _ bytes: Int64) {
        #expect(Amount.bytes(text) == bytes)
    }

    @Test(arguments: [
        ("90", 90), ("1.5h", 5400), ("2d", 172_800), ("5M", nil), ("-1", nil), ("soon", nil), ("", nil), ("1e9", nil),
        ("nan", nil),
    ])
    func `Durations are in seconds unless they have a unit, and below a billion seconds`(
        _ text: String, _ seconds: Double?
    ) {
        #expect(Amount.seconds(text) == seconds)
    }

    @Test func `Options of a session determine its configuration and its name`() throws {
        let none = try SessionOptions(parse("get u"))
        #expect(none.key.isEmpty && !none.configuration.sessionSendsLaunchEvents)
        #expect(none.configuration.retryPolicy == .robust && none.configuration.bandwidthLimit == nil)
        let some = try SessionOptions(parse("put f u --tries 2 --max-time 5m -j 1 --limit-rate 1k"))
        #expect(some.configuration.retryPolicy == .custom(RetryPolicy.Settings { $0.maximumAttempts = 2 }))
        #expect(some.configuration.timeoutIntervalForResource == 300)
        #expect(some.configuration.httpMaximumConnectionsPerHost == 1 && some.configuration.bandwidthLimit == 1024)
        #expect(some.key.count == 4)
        #expect(throws: CallWords.Fault.self) { try SessionOptions(parse("get u --max-time 0")) }
        #expect(throws: CallWords.Fault.self) { try SessionOptions(parse("get u -s s --tries 2")) }
    }

    @Test func `The table is consistent`() {
        let names = CommandTable.all.map(\.name)
        #expect(Set(names).count == names.count)
        for command in CommandTable.all {
            let options = command.allOptions
            #expect(Set(options.map(\.name)).count == options.count, "\(command.name)")
            let shorts = options.compactMap(\.short)
            #expect(Set(shorts).count == shorts.count, "\(command.name): \(shorts)")
            // An optional or repeated argument must be the last, or the arguments would be ambiguous.
            #expect(command.arguments.dropLast().allSatisfy { !$0.isOptional && !$0.isRepeated }, "\(command.name)")
            let names = Set(command.arguments.map(\.name))
            #expect(names.isDisjoint(with: options.map(\.name)), "\(command.name)")
            #expect(!command.summary.hasSuffix("."), "\(command.name)")
        }
    }

    @Test func `Help lists all commands and options`() {
        let overview = Help.overview()
        for command in CommandTable.all {
            #expect(overview.contains("  \(command.name) "), "\(command.name)")
            let help = Help.command(command)
            for option in command.allOptions { #expect(help.contains("--\(option.name)"), "\(command.name)") }
            #expect(help.split(separator: "\n").allSatisfy { $0.count <= 120 || $0.contains("://") }, "\(command.name)")
        }
    }

    @Test func `Help separates the options of all commands from those of calls to the service`() throws {
        let lines = Help.overview().split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let title = try #require(lines.firstIndex(of: "Options of all commands:"))
        let options = Array(lines[(title + 1)...].prefix { !$0.isEmpty })
        #expect(options.count == CommandTable.common.count && !options.contains { $0.contains("--json") })
        #expect(lines.contains { $0.hasPrefix("  --json ") })
        #expect(throws: CallWords.Fault.self) { try parse("profiles --json") }
    }

    @Test func `Completions depend on the position in the line`() async {
        func answer(_ line: String) -> Completions.Answer {
            Completions.answer(line.split(separator: " ", omittingEmptySubsequences: false).map(String.init))
        }
        #expect(answer("put ") == .files && answer("put f ") == .words([]) && answer("put f u ") == .words([]))
        #expect(answer("get u v -o ") == .files && answer("-q get u -s ") == .sessions && answer("task ") == .sessions)
        #expect(answer("task s ") == .words([]) && answer("nothing ") == .words([]) && answer("--url ") == .words([]))
        #expect(
            answer("webhook set u --state=p") == .words(["enabled", "paused"].map { .init(word: "--state=\($0)") }))
        #expect(
            Completions.connection(of: ["--url", "u", "get", "--profile=p", "-q"]) == ["--url", "u", "--profile=p"])
        let sessions: ([String]) async -> [String] = { _ in ["nightly", "a:b"] }
        #expect(await Completions.lines(["bash", "tasks", "ni"], sessions: sessions) == ["nightly"])
        #expect(await Completions.lines(["zsh", "tasks", ""], sessions: sessions) == ["nightly:", "a\\:b:"])
        // Readline has split the line at the colon.
        #expect(await Completions.lines(["bash", "tasks", "a", ":"], sessions: sessions) == ["b"])
    }

    // MARK: Sets

    @Test func `An option of a command hides the common option of its name`() throws {
        let words = try parse("set publish s --version v2 list")
        #expect(words.text("version") == "v2")
        #expect(throws: CallWords.Fault.self) { try parse("set publish s --version") }
        guard case .version = try CallWords.parse(["tasks", "--version"]) else {
            Issue.record("--version prints the version")
            return
        }
    }

    @Test(arguments: [
        "get --set s -i f", "get --hf a/b --segments 2", "get --set s --allow x", "get --hf a/b --set-version v",
        "get u --revision main", "get --set s a b", "get --set s -o -", "get --set s --session t",
    ])
    func `Options of sets and of URLs exclude each other`(_ line: String) throws {
        let words = try parse(line)
        #expect(throws: CallWords.Fault.self) { try SetDownload.check(words) }
    }

    @Test func `Calls for sets and for URLs are told apart`() throws {
        for line in ["get --set s --force f", "get --hf a/b --allow x --session t -o f", "get u -i f"] {
            try SetDownload.check(parse(line))
        }
        #expect(try SetDownload.isMeant(by: parse("get --hf a/b")) && !SetDownload.isMeant(by: parse("get u")))
    }

    @Test func `A version has one source, with the options of its kind`() throws {
        let hub = try VersionOrder(parse("set publish s --hf o/n --revision v1 --type dataset --allow a --allow b"))
        let source = SetSource {
            ($0.kind, $0.repository, $0.revision, $0.type) = (.huggingface, "o/n", "v1", .dataset)
            $0.allow = ["a", "b"]
        }
        #expect(hub == .source(source))
        #expect(try VersionOrder(parse("set publish s --manifest http://h/m")) == .source(.manifest("http://h/m")))
        for line in [
            "set publish s", "set publish s f --hf o/n", "set publish s --checksums http://h/ --revision x",
            "set publish s --hf o/n --base http://h/",
        ] {
            #expect(throws: CallWords.Fault.self, "\(line)") { try VersionOrder(parse(line)) }
        }
    }

    @Test func `The lines of a version are URLs, URLs with paths, or JSON`() throws {
        let plain = try VersionOrder.files("http://h/a%20b?x\n\nhttp://h/c\td/e\n", of: "f")
        #expect(plain.map(\.path) == ["a b", "d/e"] && plain.map(\.request.url) == ["http://h/a%20b?x", "http://h/c"])
        let line = #"{"path":"a","request":{"url":"http://h/a"},"length":3}"#
        let json = try VersionOrder.files("\n\(line)\n", of: "f")
        #expect(json.first?.length == 3 && json.count == 1)
        for (text, said) in [
            ("http://h/", "f, line 1"), ("{}", "f, line 1"),
            ("\n{\"path\":\"../a\",\"request\":{\"url\":\"http://h\"}}", "f, line 2"),
            ("# nothing", "names no file"),
        ] {
            let failure = try #require(throws: Failure.self) { try VersionOrder.files(text, of: "f") }
            #expect(failure.lines.first?.contains(said) == true, "\(failure.lines)")
        }
    }

    @Test func `The configuration of a set comes from pairs of options`() throws {
        func put(_ line: String) throws -> FileSetPut {
            try SetCommands.configuration(parse("set publish s f " + line))
        }
        #expect(try put("") == FileSetPut())
        let folder = try put("--root r --path p/q --layout hf-cache --keep 1 --grace 5m")
        #expect(folder.destination.newValue == SetDestination(root: "r", path: "p/q"))
        #expect(folder.layout == .hfCache && folder.keep == 1 && folder.grace == 300)
        #expect(try put("--bucket b --prefix p").destination.newValue == SetDestination(bucket: "b", prefix: "p"))
        for line in ["--root r", "--prefix p", "--root r --path p --bucket b --prefix q"] {
            #expect(throws: CallWords.Fault.self, "\(line)") { try put(line) }
        }
    }

    @Test func `A version is shown with its progress and its failures`() {
        let version = SetVersion {
            ($0.name, $0.version, $0.versionId, $0.state, $0.commit) = ("s", "v1", "sver_1", .failed, "c0")
            ($0.files.total, $0.files.fetched, $0.files.reused, $0.files.failed) = (5, 2, 1, 2)
            ($0.bytes.total, $0.bytes.fetched, $0.bytes.reused) = (5000, 2000, 1000)
            $0.failures = [SetFailure { ($0.path, $0.taskIdentifier, $0.detail) = ("a", 7, "status 404.") }]
        }
        let lines = SetCommands.lines(version)
        #expect(lines.first == "version v1 of s: failed (sver_1)")
        #expect(lines.contains("2 fetched and 1 reused of 5 files, 3.0 of 5.0 kB"))
        #expect(lines.suffix(2) == ["a: status 404 (task 7)", "and 1 more"])
        let set = FileSet { ($0.name, $0.destination) = ("s", SetDestination(bucket: "b", prefix: "p")) }
        #expect(
            SetCommands.lines(set).prefix(2) == [
                "set s: no version is published", "published in s3://b/p, layout versions",
            ])
    }

    @Test func `Roff treats no word as a request`() {
        #expect(Roff.escape(".it's a-b\\c") == "\\&.it\\(aqs a\\-b\\ec")
    }

    // MARK: Names

    private func task(_ url: String, suggested: String? = nil) -> SessionTask {
        SessionTask {
            $0.originalRequest.url = url
            $0.response = suggested.map { name in TaskResponse { $0.suggestedFilename = name } }
        }
    }

    @Test(arguments: [
        ("a.txt", "/f/a.txt"), ("../../etc/passwd", "/f/passwd"), ("..", "/f/x"), ("a\\b", "/f/b"), ("/", "/f/x"),
        (".bashrc", "/f/_bashrc"), ("a\u{1B}[2J\n", "/f/a[2J"), ("", "/f/x"), (" a ", "/f/a"),
    ])
    func `Names of servers stay in the folder`(_ suggested: String, _ path: String) {
        let task = task("http://h/x", suggested: suggested)
        #expect(SaveLocation.folder("/f").path(for: task, besides: []) == path)
    }

    @Test(arguments: [
        ("http://h/a/b%20c.tar?x=/y", "/f/b c.tar"), ("http://h", "/f/download"), ("http://h/", "/f/download"),
        ("http://h/%2e%2e%2fetc", "/f/etc"), ("http://h/.profile", "/f/.profile"),
    ])
    func `Without a name from the server the URL has one`(_ url: String, _ path: String) {
        #expect(SaveLocation.folder("/f/").path(for: task(url), besides: []) == path)
    }

    @Test(arguments: [
        ("https://u@h.example:81/", "h.example:81"), ("http://h?a=b/c", "h"), ("http://h/a%20b?c", "a b"),
    ])
    func `Until it has a name, a download is shown with its host`(_ url: String, _ name: String) {
        #expect(Follower.name(of: task(url)) == name)
    }

    @Test func `A long name is shortened at its front, so that it keeps its extension`() {
        let long = task("http://h/x", suggested: String(repeating: "ä", count: 200) + ".tar")
        let path = SaveLocation.folder("/f").path(for: long, besides: [])
        #expect(path == "/f/" + String(repeating: "ä", count: 98) + ".tar")
    }

    @Test func `Two downloads of one call never share a file`() {
        let task = task("http://h/a.tar")
        #expect(SaveLocation.folder("/f").path(for: task, besides: ["/f/a.tar"]) == "/f/a-2.tar")
        #expect(SaveLocation.folder("/f").path(for: task, besides: ["/f/a.tar", "/f/a-2.tar"]) == "/f/a-3.tar")
    }

    @Test func `A task returns its destination`() {
        for place in [SaveLocation.folder("/f/"), .file("/f/a"), .standardOutput] {
            var task = task("http://h/a")
            task.metadata[SaveLocation.key] = place.text
            #expect(SaveLocation(keptWith: task) == place)
        }
        #expect(SaveLocation(keptWith: task("http://h/a")) == .nowhere)
    }

    // MARK: Words

    @Test(
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (99_949, "99.9 kB"), (99_950, "100 kB"), (999_499, "999 kB"),
            (999_500, "1.0 MB"), (314_572_800, "315 MB"), (Int64.max, "9.2 EB"),
        ] as [(Int64, String)])
    func `Byte counts have three digits`(_ count: Int64, _ text: String) { #expect(Words.bytes(count) == text) }

    @Test func `A part has the unit of the whole`() {
        #expect(Words.bytes(400_000, of: 1_200_000) == "0.4 of 1.2 MB")
        #expect(Words.bytes(5, of: 10) == "5 of 10 B")
    }

    @Test(arguments: [
        (0.04, "0.0 s"), (9.96, "10 s"), (99.4, "99 s"), (100, "2 min"), (7200, "2 h"), (172_800, "2 days"),
    ])
    func `Durations have one unit`(_ seconds: Double, _ text: String) { #expect(Words.duration(seconds) == text) }

    @Test(arguments: [(0, "0:00"), (3.2, "0:04"), (61, "1:01"), (3723, "1:02:03"), (.infinity, "days")])
    func `The remaining time is printed as on a clock`(_ seconds: Double, _ text: String) {
        #expect(Words.clock(seconds) == text)
    }

    @Test func `An attempt without a completion is printed as such`() {
        func words(_ error: String?, deadline: Double? = nil) -> String {
            let attempt = LaunchAttempt {
                $0.startedAt = "2026-11-30T12:00:00.000Z"
                ($0.statusCode, $0.error) = (200, error)
            }
            return AppCommands.words(attempt, deadline: deadline)
        }
        #expect(words("notCompleted", deadline: 5).hasSuffix("200 OK, not completed within 5 s"))
        #expect(words(nil, deadline: 5).hasSuffix("200 OK"))
        #expect(words("notCompleted").hasSuffix("200 OK, not completed in time"), "\(words("notCompleted"))")
        #expect(words(nil).hasSuffix("200 OK"), "\(words(nil))")
    }

    @Test func `Events are printed in words`() {
        func event(_ type: Event.Kind, _ data: JSON) -> String {
            Words.event(Event { ($0.type, $0.data) = (type, JSONText(data)) }, now: 0)
        }
        #expect(
            event(
                .taskDidComplete, ["outcome": "httpError", "error": nil, "response": ["statusCode": 404, "url": "u"]])
                == "failed: the server answered 404 Not Found")
        #expect(
            event(.taskDidResumeAtOffset, ["fileOffset": 5_000_000, "expectedTotalBytes": nil, "cause": "x"])
                == "resumed at 5.0 MB: x")
        #expect(
            event(
                .taskWillRetry,
                [
                    "attempt": 2, "error": ["code": -1001, "name": "timedOut", "localizedDescription": "Too slow."],
                    "nextAt": "1970-01-01T00:00:05Z", "offset": 0,
                ])
                == "attempt 2 ended: Too slow, retries in 5 s")
        // An unknown event of a newer service is printed as its type.
        #expect(event("task.didDream", [:]) == "task.didDream")
        #expect(event(.taskDidComplete, [:]) == "task.didComplete")
    }

    @Test func `No text controls the terminal`() {
        #expect(
            Terminal.printable("a\u{1B}]0;x\u{7}\r\nb\u{202E}c\td")
                == "a\u{FFFD}]0;x\u{FFFD}\u{FFFD}\u{FFFD}b\u{FFFD}c\td")
    }

    @Test func `JSON on a terminal has escapes for characters that control it`() {
        func harmless(_ text: String) -> String { String(decoding: Terminal.harmless(Array(text.utf8)), as: UTF8.self) }
        #expect(harmless("{\"é\":\"\u{9B}2J\u{7F}\u{202E}\"}") == "{\"é\":\"\\u009b2J\\u007f\\u202e\"}")
    }

    // MARK: Bars

    @Test func `Rates are those of the transfer, without waits`() {
        func pace(_ spans: (Int64, Int64)...) -> Pace {
            func time(_ milliseconds: Int64) -> String {
                var text: [UInt8] = []
                TimeText.append(milliseconds, to: &text)
                return String(decoding: text, as: UTF8.self)
            }
            return Pace(
                TaskMetrics {
                    $0.taskInterval.duration = 3600
                    $0.transactionMetrics = spans.map { start, end in
                        TransactionMetrics { ($0.fetchStartDate, $0.responseEndDate) = (time(start), time(end)) }
                    }
                })
        }
        let first = pace((600_000, 601_000), (900_000, 902_000))
        #expect(first.seconds == 3 && first.words(for: 12_000_000) == "12.0 MB in 3.0 s, 4.0 MB/s")
        // Segments, and tasks of one call, transfer at the same time.
        let second = pace((600_500, 601_500), (600_200, 600_700), (800_000, 800_500))
        #expect(second.seconds == 1.8 && Pace([first, second]).seconds == 4)
        #expect(pace().words(for: 5) == "5 B" && pace((1, 1)).words(for: 5) == "5 B")
    }

    @Test func `A bar fits its terminal`() {
        let bar = Bar(
            name: "a-rather-long-name-of-a-file-0001.tar.gz", received: 42_000_000, expected: 100_000_000,
            speed: 2_000_000)
        for columns in [20, 40, 60, 80, 120, 300] {
            for isUnicode in [true, false] { #expect(bar.line(columns: columns, isUnicode: isUnicode).count < columns) }
        }
        let line = bar.line(columns: 100, isUnicode: false)
        #expect(line.hasPrefix("a-rather-long-") && line.hasSuffix(" 42 % 42.0 of 100 MB, 2.0 MB/s, 0:29 left"))
    }

    @Test func `A bar shows the reason of a wait`() {
        let bar = Bar(name: "a", received: 0, expected: nil, speed: nil, note: "connecting")
        #expect(bar.line(columns: 80, isUnicode: false).hasSuffix("connecting") && bar.fraction == nil)
        #expect(Bar(name: "a", received: 5, expected: 0).fraction == nil)
        #expect(Bar(name: "a", received: 9, expected: 5).fraction == 1)
    }

    @Test func `Speed is that of the last seconds`() {
        var meter = SpeedMeter()
        #expect(meter.speed(at: 0) == nil)
        meter.add(0, at: 0)
        #expect(meter.speed(at: 0.1) == nil)
        for second in 1...20 { meter.add(Int64(second) * 1000, at: Double(second)) }
        #expect(meter.speed(at: 20) == 1000)
        // The transfer makes no progress.
        #expect(meter.speed(at: 30) == 0)
        // The transfer restarts.
        meter.add(10, at: 31)
        meter.add(110, at: 32)
        #expect(meter.speed(at: 32) == 100)
    }

    @Test func `Of many bars the moving ones come first, and a line has the total`() {
        var items: [Int64: Follower.Item] = [:]
        for number in 1...20 as ClosedRange<Int64> {
            var bar = Bar(name: "f\(number)", received: 1000, expected: 10_000)
            if number < 15 { bar.note = "waiting for its turn" }
            items[number] = Follower.Item(task: SessionTask(), bar: bar, heardAt: 0)
        }
        let lines = TransferDisplay.lines(items, Follower.Done(count: 5, bytes: 1000), 80, 12, false)
        #expect(lines.count == 10)
        #expect(lines[0].hasPrefix("f15 ") && lines[6].hasPrefix("f1 ") && lines[8] == "and 12 more")
        #expect(lines[9] == "5 of 25 done, 21.0 of 201 kB")
        #expect(
            TransferDisplay.lines(
                [1: Follower.Item(task: SessionTask(), bar: Bar(name: "a"), heardAt: 0)], Follower.Done(), 80, 24, true
            ).count == 1)
    }

    @Test func `Tables are aligned`() {
        var table = Table(["a", "longer"])
        table.add(["wide cell", "x"])
        #expect(table.lines == ["A          LONGER", "wide cell  x"])
    }

    // MARK: Settings

    @Test func `Profiles are read`() throws {
        let profiles = try Profile.parse("# mine\nurl = http://a\n[work]\n url=https://b?x=y \nkey = k\n")
        #expect(profiles["default"]?.values == ["url": "http://a"])
        #expect(profiles["work"]?.values == ["url": "https://b?x=y", "key": "k"])
        #expect(throws: Profile.Fault(line: 2, text: "keys is none of url, key, webhook-secret, ca-file")) {
            try Profile.parse("[a]\nkeys = k")
        }
        // A line without a value may be a key.
        for line in ["usd_secret", "c2VjcmV0=="] {
            #expect(throws: Profile.Fault(line: 2, text: "this is not NAME = VALUE")) {
                try Profile.parse("[a]\n\(line)")
            }
        }
    }

    @Test func `A file that cannot be read is no empty file`() throws {
        let failure = try #require(throws: Failure.self) { try LocalFiles.read("/") }
        #expect(failure.lines == ["/: Is a directory"])
    }

    @Test(arguments: [
        ("sha-256:\(String(repeating: "a", count: 64))", "sha-256"), ("SHA256:abc", "sha-256"),
        (String(repeating: "0", count: 32), "md5"), (String(repeating: "0", count: 128), "sha-512"),
    ])
    func `The algorithm of a digest is named, or follows from its length`(_ text: String, _ algorithm: String) throws {
        #expect(try Transfers.digest(text).algorithm.rawValue == algorithm)
    }

    @Test(arguments: ["", "abc", "crc32:abc"]) func `An invalid digest is refused`(_ text: String) {
        #expect(throws: CallWords.Fault.self) { try Transfers.digest(text) }
    }
}
