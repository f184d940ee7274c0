import Base
import Core
import TestSupport
import Testing

/// The page's lists of sessions and tasks in a browser: their titles, orders and figures.
@Suite(.serialized) struct PageListTests {
    @Test func `Titles are descriptions, else client ids, else file names, with the other names beneath`() async throws
    {
        let scene = try await Scene(configuration: nil)
        try await scene.api.put("/v1/sessions/s", ["sessionDescription": "Nightly mirror"])
        try await scene.download(
            "/a/one%20file.bin", ["state": "suspended", "taskDescription": "The first", "clientTaskId": "one"])
        try await scene.download("/b.bin", ["state": "suspended", "clientTaskId": "two"])
        try await scene.download("/c.bin", ["state": "suspended"])
        let page = try await PageDriver(scene.service)
        try await page.seeText("Nightly mirror", in: "tbody .title bdi")
        try await page.seeText("s", in: "tbody .sub code")
        try await page.go("#/sessions/s")
        try await page.seeText("Nightly mirror", in: "h1 bdi")
        try await page.seeText("s", in: ".heading code")
        try await page.see(texts(of: "tbody .title bdi") + " == 'The first,two,c.bin'")
        #expect(try await page.browser.evaluate(texts(of: "tbody .sub bdi")) == "one,one file.bin,b.bin")
        try await page.go("#/sessions/s/tasks/1")
        try await page.seeText("The first", in: "h1 bdi")
        #expect(try await page.browser.evaluate(texts(of: ".heading .sub bdi")) == "one,one file.bin")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Sessions are sorted by oldest, newest or busiest, as the address says`() async throws {
        let scene = try await Scene(configuration: nil)
        for name in ["a", "b", "c"] { try await scene.makeSession(name) }
        try await scene.download("/a", ["state": "suspended"], in: "a")
        try await scene.download("/b", ["earliestBeginDate": "2099-01-01T00:00:00Z"], in: "b")
        let page = try await PageDriver(scene.service)
        let names = texts(of: "tbody .title")
        try await page.see("\(names) == 'a,b,c'")
        try await page.choose("Order", "desc")
        try await page.see("\(names) == 'c,b,a' && location.hash.includes('order=desc')")
        try await page.choose("Order", "busiest")
        try await page.see("\(names) == 'b,a,c' && location.hash.includes('order=busiest')")
        try await page.browser.evaluate("history.back()")
        try await page.see("\(names) == 'c,b,a'")
        // A second page would have sessions without a comparison.
        let more = """
            t.send = fetch;
            globalThis.fetch = async (target, options) => {
                const answer = await t.send.call(globalThis, target, options);
                if (!target.includes("limit=1000")) return answer;
                const headers = { "Content-Type": "application/json" };
                return new Response(JSON.stringify({ ...await answer.json(), nextCursor: "next" }), { headers });
            };
            true
            """
        try await page.browser.evaluate(more)
        try await page.go("#/sessions?order=busiest")
        try await page.seeText("Of the 3 newest sessions.")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `The remaining time is shown for each transfer, and for the total if every length is known`()
        async throws
    {
        let scene = try await Scene()
        let slowly = [Misbehaviour.trickle(size: 16 << 10, pause: .milliseconds(20))]
        scene.origin.serve("/slow", .generated(seed: 2, length: 512 << 20), always: slowly)
        try await scene.download("/slow")
        let page = try await PageDriver(scene.service, at: "/#/sessions/s")
        try await page.see("/% of 512 MiB\\s+\\d+ (s|min|h|d)\\b.* left/.test(t.text('tbody'))")
        try await page.see("/^about \\d+ (s|min|h|d)\\b.* left$/.test(t.text('#time-left'))")
        try await scene.download("/later", ["earliestBeginDate": "2099-01-01T00:00:00Z"])
        try await page.seeText("left for 1 of 2 running tasks", in: "#time-left")
        try await page.go("#/sessions/s/tasks/1")
        try await page.see("/about \\d+ .* left/.test(t.text('.panel-head .aside'))")
        try await scene.api.post("/v1/sessions/s/tasks/1/cancel")
        try await page.go("#/sessions/s")
        try await page.seeText("Cancelled", in: "tbody .badge")
        try await page.see("document.querySelector('#time-left') == null && !t.text('tbody').includes('left')")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Tasks of all sessions are searched by a part of their names`() async throws {
        let scene = try await Scene(configuration: nil)
        for name in ["a", "b"] { try await scene.makeSession(name) }
        try await scene.download("/one", ["state": "suspended", "clientTaskId": "nightly-report"], in: "a")
        try await scene.download("/Nightly%20photos.zip?key=hidden", ["state": "suspended"], in: "b")
        try await scene.download("/two", ["state": "suspended", "taskDescription": "Weekly"], in: "a")
        let page = try await PageDriver(scene.service)
        try await page.click("Tasks")
        let titles = texts(of: "tbody .title bdi")
        try await page.see("\(titles) == 'Weekly,Nightly photos.zip,nightly-report'")
        try await page.fill("Search all tasks", "NIGHTLY")
        try await page.browser.press("Enter")
        try await page.see("\(titles) == 'Nightly photos.zip,nightly-report'")
        #expect(try await page.browser.evaluate("location.hash") == "#/tasks?search=NIGHTLY")
        try await page.click("1 Nightly photos.zip")
        try await page.see("location.hash == '#/sessions/b/tasks/1'")
        try await page.browser.evaluate("history.back()")
        try await page.see("\(titles) == 'Nightly photos.zip,nightly-report'")
        try await page.click("a", in: "tbody")
        try await page.see("location.hash == '#/sessions/a'")
        try await page.seeText("Weekly", in: "tbody")
        try await page.fill("Search tasks", "WEEK")
        try await page.browser.press("Enter")
        try await page.see("\(titles) == 'Weekly'")
        try await page.go("#/tasks?search=hidden")
        try await page.seeText("No task matches")
        // Empty pages before the end of the list are skipped.
        let empty = """
            t.send = fetch;
            globalThis.fetch = async (target, options) => {
                if (!target.includes("search=")) return t.send.call(globalThis, target, options);
                if (target.includes("cursor=")) return t.send.call(globalThis, target.replace(/&cursor=[^&]*/, ""), options);
                return new Response('{"items":[],"nextCursor":"next"}', { headers: { "Content-Type": "application/json" } });
            };
            true
            """
        try await page.browser.evaluate(empty)
        try await page.go("#/tasks?search=weekly")
        try await page.see("\(titles) == 'Weekly'")
        #expect(page.browser.takeComplaints() == [])
    }
}

/// The texts of all elements of a selector, as an expression.
private func texts(of selector: String) -> String {
    "[...document.querySelectorAll('\(selector)')].map((element) => element.innerText).join()"
}
