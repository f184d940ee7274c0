import Base
import Core
import TestSupport
import Testing

/// The page at `/` in a browser: its contents and its looks.
@Suite(.serialized) struct PageTests {
    @Test func `Every view is readable at every width, in light and dark, and violates no browser rule`()
        async throws
    {
        let stage = try await PageStage()
        let page = try await PageDriver(stage.scene.service)
        let launch = try await stage.scene.launches(of: "done").first?["launchId"].string ?? ""
        let places = [
            ("#/sessions", "done"), ("#/tasks", "segmented"), ("#/tasks?search=nothing", "No task matches"),
            ("#/sessions/s", "segmented"), ("#/sessions/s/events", "didComplete"),
            ("#/sessions/s/configuration", "retryPolicy"), ("#/sessions/s/tasks/1", "Receiving"),
            ("#/sessions/s/tasks/2", "SOURCE"), ("#/sessions/s/tasks/4", "its earliest begin date"),
            ("#/sessions/s/tasks/7", "Name lookup"), ("#/sessions/s/tasks/8", "without breaks"), ("#/launches", "done"),
            ("#/sets", "models"), ("#/sets/models", "Make current"), ("#/sets/models/broken", "404"),
            ("#/launches/\(launch)", "Attempt"),
            ("#/questions", "archive"), ("#/app", "New data"), ("#/nowhere", "No such page"),
        ]
        for (place, text) in places {
            try await page.go(place)
            try await page.see("t.text('main').toUpperCase().includes(\(page.quoted(text.uppercased())))")
            try await checkLooks(of: page, place)
        }
        try await page.go("#/sessions/s")
        try await page.click("New download")
        try await checkLooks(of: page, "new download")
        try await page.click("More")
        try await checkLooks(of: page, "new download with more")
        try await page.click("Cancel")
        try await page.click("Keyboard shortcuts")
        try await checkLooks(of: page, "shortcuts")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `The operator sees the service and its apps`() async throws {
        let stage = try await PageStage()
        let page = try await PageDriver(stage.scene.service, at: "/#/service", key: "dev-admin")
        try await page.see("document.querySelectorAll('.plots polyline.line').length >= 9")
        // One waits for its time and two for answers; the suspended one has no reason.
        try await page.see(
            """
            [...document.querySelectorAll('.plots .panel')].some((panel) =>
              panel.textContent.includes('Waiting') && panel.querySelector('b').textContent === '3')
            """)
        try await page.seeText("Ready")
        try await checkLooks(of: page, "service")
        try await page.go("#/apps")
        try await page.seeText("dev", in: "tbody")
        try await checkLooks(of: page, "apps")
        // The operator's key opens no session; an app's key beside it does.
        try await page.go("#/sessions")
        try await page.signIn("dev")
        try await page.seeText("done", in: "tbody")
        try await page.click("Service")
        try await page.seeText("Free disk")
        // Only a request can determine the owner of a key.
        let complaints = page.browser.takeComplaints().filter { !$0.contains("403 (Forbidden) \(page.base)/v1/app") }
        #expect(complaints == [])
    }

    @Test func `Progress, states and events are shown live, and watching attaches no client`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        let gate = Gate()
        scene.origin.serve("/large", .generated(seed: 1, length: 8 << 20), always: [.holdBody(after: 4 << 20, gate)])
        let slowly = [Misbehaviour.trickle(size: 16 << 10, pause: .milliseconds(20))]
        scene.origin.serve("/slow", .generated(seed: 2, length: 512 << 20), always: slowly)
        let page = try await PageDriver(scene.service, at: "/#/sessions/s")
        try await page.seeText("No tasks yet")
        try await scene.download("/large", ["clientTaskId": "a"])
        try await page.see("/^[45]\\d %/m.test(t.text('tbody'))")
        try await page.go("#/sessions/s/tasks/1")
        try await page.seeText("Receiving")
        try await scene.download("/slow")
        try await page.go("#/sessions/s/tasks/2")
        try await page.see("document.querySelectorAll('.plot path.area').length == 1")
        #expect(try await scene.session()["attachment"] == .null)
        try await page.click("Cancel")
        try await page.click("Cancel task 2")
        try await page.seeText("Cancelled", in: "#task-status")
        try await page.go("#/sessions/s/tasks/1")
        gate.open()
        try await page.seeText("Succeeded", in: "#task-status")
        try await page.seeText("TLS", in: ".waterfall")
        #expect(try await page.count(".lane rect.receive") == 1)
        try await receiver.waitForDelivery(type: "session.handleEvents")
        try await page.go("#/sessions/s/events")
        try await page.seeText("completed: succeeded, status 200")
        try await page.browser.evaluate("document.getElementById('announcer').textContent = 'Task 1 changed'")
        try await page.go("#/sessions")
        try await page.see("document.getElementById('announcer').textContent == ''", within: .seconds(5))
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `A view that is opened during an outage appears after it`() async throws {
        let scene = try await Scene()
        try await scene.download("/a", ["state": "suspended", "clientTaskId": "patient"])
        let page = try await PageDriver(scene.service)
        try await page.seeText("s", in: "tbody")
        try await page.disconnect()
        try await page.go("#/sessions/s")
        try await page.seeText("The service cannot be reached")
        #expect(try await page.count(".notice") == 1)
        try await page.disconnect(false)
        try await page.seeText("live")
        try await page.seeText("patient", in: "tbody")
        try await page.see("document.querySelector('.notice') == null")
    }

    /// The response of the page's requests, in part by the test: `t.answer(target, answer)` returns another one.
    private static let answering = """
        t.send = fetch;
        t.json = (value, status = 200) =>
            new Response(JSON.stringify(value), { status, headers: { "Content-Type": "application/json" } });
        globalThis.fetch = async (target, options) =>
            await t.answer(target, options) ?? await t.send.call(globalThis, target, options);
        """

    @Test func `A view whose first request comes too early appears later`() async throws {
        let scene = try await Scene()
        try await scene.download("/a", ["state": "suspended", "clientTaskId": "patient"])
        let page = try await PageDriver(scene.service)
        try await page.seeText("s", in: "tbody")
        let refuse = """
            \(Self.answering)
            t.refused = 0;
            t.answer = (target) => {
                if (target !== "/v1/sessions/s" || t.refused > 0) return null;
                t.refused += 1;
                return t.json({ status: 429, code: "rate-limited", title: "There are too many requests" }, 429);
            };
            true
            """
        try await page.browser.evaluate(refuse)
        try await page.go("#/sessions/s")
        try await page.seeText("live")
        try await page.seeText("patient", in: "tbody")
        #expect(try await page.browser.evaluate("t.refused") == 1)
    }

    @Test func `Figures are read again after an event that arrived during their request`() async throws {
        let scene = try await Scene()
        let page = try await PageDriver(scene.service)
        try await page.seeText("s", in: "tbody")
        // Responses with the session are held, with the figures before the second event. The stream is recorded.
        let hold = """
            \(Self.answering)
            [t.held, t.isHeld, t.streamed] = [[], false, ""];
            t.answer = async (target, options) => {
                const isStream = target.includes("attach=false");
                if (!isStream && (target !== "/v1/sessions/s" || !t.isHeld)) return null;
                const answer = await t.send.call(globalThis, target, options);
                if (!isStream) {
                    await new Promise((resolve) => t.held.push(resolve));
                    return answer;
                }
                const record = new TransformStream({
                    transform(bytes, stream) {
                        t.streamed += new TextDecoder().decode(bytes);
                        stream.enqueue(bytes);
                    },
                });
                return new Response(answer.body.pipeThrough(record), { headers: answer.headers });
            };
            true
            """
        try await page.browser.evaluate(hold)
        try await page.go("#/sessions/s")
        try await page.seeText("live")
        try await page.browser.evaluate("t.isHeld = true")
        try await scene.download("/a", ["state": "suspended", "clientTaskId": "first"])
        try await page.see("t.held.length == 1")
        try await scene.download("/b", ["state": "suspended", "clientTaskId": "second"])
        try await page.see("t.streamed.includes('second')")
        try await page.browser.evaluate("t.isHeld = false; t.held.forEach((release) => release()); true")
        try await page.see(
            """
            [...document.querySelectorAll('.tiles .tile')].some((tile) =>
              tile.innerText.includes('Suspended') && tile.querySelector('.tile-value').innerText === '2')
            """)
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Metrics that the log has lost are reported as lost`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("a"))
        let number = try await scene.download("/a")
        try await scene.completed(number)
        let page = try await PageDriver(scene.service)
        try await page.seeText("s", in: "tbody")
        let lose = """
            \(Self.answering)
            t.log = { items: [], lastSeq: 3, acknowledgedSeq: 3, finished: true };
            t.failures = 1;
            t.answer = (target) => {
                if (!target.includes("/events?") || !target.includes("limit=")) return null;
                t.failures -= 1;
                return t.failures < 0 ? t.json(t.log) : t.json({ status: 403, code: "x", detail: "Not for you." }, 403);
            };
            true
            """
        try await page.browser.evaluate(lose)
        try await page.go("#/sessions/s/tasks/\(number)")
        try await page.seeText("The log of events cannot be read: Not for you.")
        try await page.go("#/sessions")
        try await page.seeText("s", in: "tbody")
        try await page.go("#/sessions/s/tasks/\(number)")
        try await page.seeText("The event with the metrics is no longer in the log.")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Words of a newer service are shown as they are, and a fault of a view ends no polling`() async throws {
        let scene = try await Scene()
        let page = try await PageDriver(scene.service, at: "/#/sessions", key: nil)
        let change = """
            \(Self.answering)
            t.polls = 0;
            t.answer = async (target, options) => {
                if (!target.startsWith("/v1/apps?")) return null;
                t.polls += 1;
                const apps = await (await t.send.call(globalThis, target, options)).json();
                apps.items[0].state = "dormant";
                apps.items[0].webhook = { url: "http://h/", state: "asleep" };
                return t.json(apps);
            };
            true
            """
        try await page.browser.evaluate(change)
        try await page.go("#/apps")
        try await page.signIn("dev-admin")
        try await page.seeText("dormant", in: "tbody")
        try await page.seeText("asleep", in: "tbody")
        let survives = """
            import("/page/stream.js").then(({ poll }) => new Promise((done) => {
                const ender = new AbortController();
                let calls = 0;
                poll(async () => {
                    calls += 1;
                    if (calls === 1) throw new Error("a fault");
                    ender.abort();
                    done(calls);
                }, 1, ender.signal);
            }))
            """
        #expect(try await page.browser.evaluate(survives) == 2)
        #expect(page.browser.takeComplaints().contains { $0.contains("a fault") })
    }

    @Test func `A pause leaves no listener`() async throws {
        let scene = try await Scene(configuration: nil)
        let page = try await PageDriver(scene.service)
        let sleep = """
            import("/page/stream.js").then(async ({ sleep }) => {
                let listeners = 0;
                const { signal } = new AbortController();
                const { addEventListener: add, removeEventListener: remove } = EventTarget.prototype;
                signal.addEventListener = (...words) => { listeners += 1; add.apply(signal, words); };
                signal.removeEventListener = (...words) => { listeners -= 1; remove.apply(signal, words); };
                await sleep(1, signal);
                return listeners;
            })
            """
        #expect(try await page.browser.evaluate(sleep) == 0)
        let aborted = """
            import("/page/stream.js").then(async ({ sleep }) => {
                const ender = new AbortController();
                setTimeout(() => ender.abort(), 1);
                await sleep(600000, ender.signal);
                return true;
            })
            """
        #expect(try await page.browser.evaluate(aborted) == true)
    }

    @Test func `An older answer of the log does not replace a newer page`() async throws {
        let scene = try await Scene()
        for _ in 1...3 { try await scene.download("/a", ["state": "suspended"]) }
        try await scene.api.post("/v1/sessions/s/tasks/cancel")
        for number in 1...3 { try await scene.completed(number) }
        let page = try await PageDriver(scene.service, at: "/#/sessions/s/events")
        try await page.see("document.querySelectorAll('.log li').length >= 3")
        let last = try #require(try await scene.session()["lastEventSeq"].int)
        let hold = """
            \(Self.answering)
            [t.held, t.isHandled] = [[], false];
            t.answer = async (target, options) => {
                if (!target.includes("after=1&limit=")) return null;
                await new Promise((resolve) => t.held.push(resolve));
                const answer = await t.send.call(globalThis, target, options);
                const read = answer.json.bind(answer);
                answer.json = async () => {
                    const page = await read();
                    setTimeout(() => { t.isHandled = true; });
                    return page;
                };
                return answer;
            };
            true
            """
        try await page.browser.evaluate(hold)
        try await page.go("#/sessions/s/events?after=1")
        try await page.see("t.held.length == 1")
        try await page.go("#/sessions/s/events?after=\(last - 1)")
        try await page.see("document.querySelectorAll('.log li').length == 1")
        try await page.browser.evaluate("t.held.forEach((release) => release()); true")
        try await page.see("t.isHandled")
        #expect(try await page.count(".log li") == 1)
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Leaving a view ends its stream`() async throws {
        let scene = try await Scene()
        let page = try await PageDriver(scene.service)
        let note = """
            t.streams = [];
            t.send = fetch;
            globalThis.fetch = (target, options) => {
                if (target.includes("/events?")) t.streams.push({ target, signal: options.signal });
                return t.send.call(globalThis, target, options);
            };
            true
            """
        try await page.browser.evaluate(note)
        for place in ["#/sessions/s", "#/sessions/s/events"] {
            try await page.go(place)
            try await page.seeText("live")
            try await page.see("t.streams.some(({ target }) => target.includes('attach=false'))")
            try await page.go("#/sessions")
            try await page.see("t.streams.every(({ signal }) => signal.aborted)")
            try await page.browser.evaluate("t.streams = []; true")
        }
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `A view that was left draws nothing`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("a"))
        let number = try await scene.download("/a")
        try await scene.completed(number)
        let page = try await PageDriver(scene.service)
        // The request for the log is answered after the view was left.
        let hold = """
            t.held = [];
            t.send = fetch;
            globalThis.fetch = (target, options) =>
                target.includes("/events?") && target.includes("limit=")
                    ? new Promise((_, refuse) => t.held.push(refuse))
                    : t.send.call(globalThis, target, options);
            true
            """
        try await page.browser.evaluate(hold)
        try await page.go("#/sessions/s/tasks/\(number)")
        try await page.see("t.held.length > 0 && t.text('main').includes('Took')")
        try await page.go("#/launches")
        try await page.see("document.title.startsWith('Launches') && !t.text('main').includes('Took')")
        let release = """
            t.held.forEach((refuse) => refuse(new TypeError("too late")));
            new Promise((done) => setTimeout(() => done(true), 0))
            """
        #expect(try await page.browser.evaluate(release) == true)
        #expect(try await page.browser.evaluate("t.text('main').includes('Took')") == false)
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Transfers from and into a bucket are shown with its name`() async throws {
        let store = try ObjectStore()
        let scene = try await Scene(
            store.setting("media"), environment: ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"])
        scene.origin.serve("/a", .text("a"))
        let into = try await scene.download("/a", ["destination": ["bucket": "media", "key": "x/into.txt"]])
        try await scene.completed(into)
        let source: JSON = ["kind": "download", "request": ["bucket": "media", "key": "x/into.txt"]]
        let from = try #require(try await scene.create(source)["taskIdentifier"].int)
        try await scene.completed(from)
        let page = try await PageDriver(scene.service)
        try await page.go("#/sessions/s/tasks/\(into)")
        try await page.see("t.text('main').includes('s3://media/x/into.txt') && t.text('main').includes('Moved to')")
        try await page.go("#/sessions/s/tasks/\(from)")
        try await page.see("t.text('main').includes('s3://media/x/into.txt') && !t.text('main').includes('Now at')")
        try await page.go("#/sessions/s")
        try await page.see("t.text('main').includes('into.txt') && t.text('main').includes('media')")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Names of tasks never become markup`() async throws {
        let scene = try await Scene(configuration: nil)
        let hostile = "<img src=x onerror='document.title=1'><b>bold</b>"
        try await scene.api.put("/v1/sessions/s", ["sessionDescription": .string(hostile)])
        let words: [String: JSON] = [
            "clientTaskId": .string(hostile), "taskDescription": .string(hostile), "group": .string(hostile),
            "state": "suspended",
        ]
        try await scene.download("/\(hostile.count)", words)
        let page = try await PageDriver(scene.service)
        for place in ["#/sessions", "#/sessions/s", "#/sessions/s/tasks/1"] {
            try await page.go(place)
            try await page.seeText(hostile)
            #expect(try await page.count("main img, main h1 > b, .name b") == 0)
        }
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Very many tasks are shown page by page, and the address leads to the next one`() async throws {
        let scene = try await Scene()
        for batch in 0..<3 {
            let tasks = (0..<1000).map { number -> JSON in
                scene.downloadOf(
                    "/a", ["state": "suspended", "clientTaskId": .string("task-\(batch * 1000 + number)")])
            }
            let made = try await scene.api.post("/v1/sessions/s/tasks/batch?return=minimal", ["tasks": .array(tasks)])
            expect(made, 201)
        }
        let page = try await PageDriver(scene.service, at: "/#/sessions/s")
        try await page.seeText("3,000")
        try await page.seeText("task-0", in: "tbody")
        #expect(try await page.count("tbody tr") == 50)
        try await page.click("Next page")
        try await page.seeText("task-50", in: "tbody")
        #expect(try await page.count("tbody tr") == 50)
        #expect(try await page.browser.evaluate("location.hash.includes('cursor=')") == true)
        try await page.browser.evaluate("history.back()")
        try await page.seeText("task-49", in: "tbody")
        try await page.seeText("Not succeeded", in: ".tiles")
        try await page.choose("Order", "desc")
        try await page.seeText("task-2999", in: "tbody")
        #expect(try await page.browser.evaluate("location.hash.includes('order=desc')") == true)
        try await page.fill("Search tasks", "TASK-23")
        try await page.browser.press("Enter")
        try await page.seeText("task-2399", in: "tbody tr")
        #expect(try await page.count("tbody tr") == 50)
        #expect(try await page.browser.evaluate("location.hash.includes('search=TASK-23')") == true)
        // Commands for a search do not apply to the whole session.
        #expect(try await page.count(".bulk button:disabled") == 4)
        try await page.choose("Search in", "clientTaskId")
        try await page.fill("Search tasks", "task-2345")
        try await page.browser.press("Enter")
        try await page.see("document.querySelectorAll('tbody tr').length == 1")
        #expect(try await page.browser.evaluate("location.hash.includes('clientTaskId=task-2345')") == true)
    }

    @Test func `The reference shows every route and sends requests to the service`() async throws {
        let scene = try await Scene()
        let page = try await PageDriver(scene.service, at: "/docs", key: nil)
        #expect(try await page.count("main details.operation code") >= Contract.shared.operations.count)
        for operation in Contract.shared.operations {
            #expect(try await page.count("details#\(operation.identifier)") == 1, "\(operation.identifier)")
        }
        for operation in ["getSession", "createTask"] {
            try await page.browser.evaluate("location.hash = '#\(operation)'")
            try await page.see("document.querySelector('#\(operation)[open] form.try') != null")
        }
        try await checkLooks(of: page, "docs")
        try await page.click("Send", in: "#getSession")
        try await page.fill("Another key", "dev")
        try await page.click("Open")
        try await page.see("!document.querySelector('dialog').open")
        try await page.browser.evaluate("document.getElementById('getSession-identifier').value = 's'")
        try await page.click("Send", in: "#getSession")
        try await page.seeText("\"lastEventSeq\": 0", in: "#getSession .output")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `The reference begins with sessions, and its index folds on narrow screens`() async throws {
        let scene = try await Scene(configuration: nil)
        let page = try await PageDriver(scene.service, at: "/docs", key: nil)
        let heads = "[...document.querySelectorAll('main h2')].slice(0, 3).map((head) => head.innerText).join()"
        #expect(try await page.browser.evaluate(heads) == "Sessions,Tasks,Content")
        try await page.seeText("Sessions", in: "#index h2")
        try await page.see("t.isSeen(document.getElementById('find'))")
        try await page.browser.evaluate("document.querySelector('#index a[href=\"#createTask\"]').click()")
        try await page.see("document.querySelector('#createTask[open]') != null")
        try await page.see("t.isSeen(document.getElementById('find'))")
        try await page.size(390)
        try await page.see("!t.isSeen(document.getElementById('find'))")
        try await page.click("Routes")
        try await page.see("t.isSeen(document.getElementById('find'))")
        try await page.browser.evaluate("document.querySelector('#index a[href=\"#listTasks\"]').click()")
        try await page.see("!t.isSeen(document.getElementById('find'))")
        try await page.see("Math.abs(document.querySelector('#listTasks[open]')?.getBoundingClientRect().top) < 50")
        // The key for searching unfolds it.
        try await page.browser.press("/")
        try await page.see("document.activeElement.id === 'find'")
        try await page.browser.press("s")
        try await page.see("document.getElementById('find').value === 's'")
        try await checkLooks(of: page, "index")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Without the page its paths get 404`() async throws {
        let scene = try await Scene(["--no-page"], configuration: nil)
        for path in ["/", "/docs", "/page/main.js"] {
            expectProblem(try await scene.service.api.with(key: nil).get(path), 404, "not-found")
        }
    }

    private func checkLooks(of page: PageDriver, _ place: String) async throws {
        for width in [390, 820, 1440] {
            for isDark in [false, true] {
                try await page.size(width, isDark: isDark)
                let faults = try await page.faults()
                #expect(faults == [], "\(place), \(width) wide, \(isDark ? "dark" : "light")")
            }
        }
    }
}

/// A service with every kind of state: tasks that run, in segments, wait, are suspended, failed and done; questions,
/// launches and a fetch.
struct PageStage {
    let scene: Scene
    let receiver: Receiver
    private let gate = Gate()

    init() async throws {
        scene = try await Scene(configuration: nil)
        receiver = try Receiver { $0.type == "app.performFetch" ? .json(["result": "newData"]) : .launched }
        try await scene.launches(to: receiver)
        try await scene.makeSession("s")
        try await scene.makeSession("done")
        let origin = scene.origin
        let challenge = [("WWW-Authenticate", "Basic realm=\"archive\"")]
        origin.serve("/small", .text("hello"))
        origin.serve("/ask", .text("x"), always: [.status(401, challenge)])
        origin.serve("/large", .generated(seed: 1, length: 64 << 20), always: [.holdBody(after: 3 << 20, gate)])
        origin.serve("/segmented", .generated(seed: 2, length: 64 << 20), always: [.holdBody(after: 1 << 20, gate)])
        try await scene.download("/large", ["clientTaskId": "large", "group": "images"])
        try await scene.download("/segmented", ["clientTaskId": "segmented", "segments": 4])
        try await scene.download("/small", ["clientTaskId": "held", "state": "suspended"])
        try await scene.download("/small", ["clientTaskId": "later", "earliestBeginDate": "2099-01-01T00:00:00Z"])
        try await scene.download("/ask", ["clientTaskId": "asks"])
        try await scene.download("/small", ["confirmBeforeStart": true])
        try await scene.download("/nowhere/missing.iso", ["taskDescription": "An image that is not there"])
        let unbroken = String(repeating: "name-without-any-break_", count: 9).prefix(200)
        try await scene.download(
            "/" + String(repeating: "a-part-of-the-path/", count: 100),
            [
                "clientTaskId": .string(String(unbroken)), "group": .string(String(unbroken.prefix(90))),
                "taskDescription": .string(String(repeating: "أرشيف الليل ארכיון ", count: 9) + "without breaks"),
            ])
        try await scene.download("/small", in: "done")
        try await makeSet()
        try await scene.api.post("/v1/app/background-refresh/simulate")
        try await scene.completed(7)
        try await receiver.waitForDelivery(count: 2, type: "session.handleEvents")
        try await receiver.waitForDelivery(type: "app.performFetch")
    }

    /// A set with a current version, a kept one and one that failed.
    private func makeSet() async throws {
        try await scene.makeSession("mirror", ["sessionSendsLaunchEvents": false])
        try await scene.api.put("/v1/sets/models")
        for (version, path) in [("first", "/small"), ("second", "/small"), ("broken", "/nowhere")] {
            let file: JSON = ["path": "a/b.bin", "request": ["url": .string(scene.origin.url(path))]]
            let creation: JSON = ["version": .string(version), "session": "mirror", "files": [file]]
            try await scene.api.post("/v1/sets/models/versions", creation)
            try await eventually("the end of \(version)") {
                let state = try await scene.api.get("/v1/sets/models/versions/\(version)").json["state"].string
                return ["published", "failed"].contains(state)
            }
        }
    }
}
