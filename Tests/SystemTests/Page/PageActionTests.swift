import Base
import Core
import TestSupport
import Testing

/// The page at `/` in a browser: the actions of its users.
@Suite(.serialized) struct PageActionTests {
    @Test func `A key is requested, checked, and lost with the page`() async throws {
        let scene = try await Scene()
        let page = try await PageDriver(scene.service, key: nil)
        try await page.fill("Key", "nobody's")
        try await page.click("Open")
        try await page.see("document.querySelector('form [role=alert]') != null")
        _ = page.browser.takeComplaints()
        try await page.signIn("dev")
        try await page.seeText("s", in: "tbody")
        let kept = "localStorage.length + sessionStorage.length + document.cookie.length"
        #expect(try await page.browser.evaluate(kept) == 0)
        try await page.open("/#/sessions/s")
        try await page.seeText("Your app’s key")
        try await page.signIn("dev")
        try await page.seeText("No tasks yet")
        try await page.click("Keys")
        try await page.click("Forget")
        try await page.seeText("Your app’s key")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `A key that is kept for the tab survives a reload, until it is removed or refused`() async throws {
        let scene = try await Scene()
        let page = try await PageDriver(scene.service, key: nil)
        let form = """
            [...document.querySelector('form.sign-in').elements].filter((one) => one.autocomplete)
                .map((one) => `${one.autocomplete} ${one.name === 'username' ? one.value : ''}`.trim()).join()
            """
        #expect(try await page.browser.evaluate(form) == "username app,current-password")
        try await page.click("Keep the key for this tab")
        try await page.signIn("dev")
        try await page.open("/#/sessions/s")
        try await page.seeText("No tasks yet")
        try await page.open("/docs")
        try await page.seeText("dev", in: "#holder")
        try await page.open("/#/sessions")
        try await page.seeText("s", in: "tbody")
        // The operator's key, which is not kept, is another entry of a password manager.
        try await page.click("Keys")
        try await page.see("document.querySelector('dialog [name=username]').value == 'operator'")
        try await page.click("Forget")
        try await page.seeText("Your app’s key")
        #expect(try await page.browser.evaluate("sessionStorage.length") == 0)
        try await page.open("/#/sessions")
        try await page.seeText("Your app’s key")
        #expect(page.browser.takeComplaints() == [])
        try await page.click("Keep the key for this tab")
        try await page.signIn("dev")
        let revoked = """
            for (const place of Object.keys(sessionStorage)) {
                sessionStorage[place] = sessionStorage[place].replace('"dev"', '"revoked"');
            }
            sessionStorage.length
            """
        #expect(try await page.browser.evaluate(revoked) == 1)
        try await page.open("/#/sessions")
        try await page.seeText("Your app’s key")
        #expect(try await page.browser.evaluate("sessionStorage.length") == 0)
    }

    @Test func `Sessions and downloads are created, and tasks suspended, resumed, cancelled and retried`() async throws
    {
        let scene = try await Scene(configuration: nil)
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 4 << 20), always: [.holdBody(after: 1 << 20, gate)])
        let page = try await PageDriver(scene.service)
        try await page.seeText("No sessions yet")
        try await page.click("New session")
        try await page.fill("Identifier", "nightly")
        try await page.click("Make it")
        try await page.seeText("No tasks yet")
        try await page.click("New download")
        try await page.fill("URLs", scene.origin.url("/a"))
        try await page.fill("Group", "images")
        try await page.click("Hand over")
        try await page.click("Task 1 is made.")
        try await page.seeText("Receiving", in: "#task-status")
        try await page.click("Suspend")
        try await page.seeText("Suspended", in: "#task-status")
        #expect(try await scene.task(1, in: "nightly")["state"] == "suspended")
        try await page.click("Resume")
        try await page.seeText("Receiving", in: "#task-status")
        try await page.click("Cancel")
        try await page.seeText("Keep it", in: "dialog footer")
        try await page.click("Cancel task 1")
        try await page.seeText("Cancelled", in: "#task-status")
        #expect(try await scene.completed(1, in: "nightly")["outcome"] == "cancelled")
        gate.open()
        try await page.click("Retry")
        try await page.seeText("retry of 1")
        try await page.seeText("Succeeded", in: "#task-status")
        #expect(try await scene.task(2, in: "nightly")["retryOf"] == 1)
        // A refusal is shown in words.
        try await page.go("#/sessions/nightly")
        try await page.click("New download")
        try await page.fill("URLs", "ftp://example.com/a")
        try await page.click("Hand over")
        try await page.seeText("/request/url", in: "dialog")
        try await page.click("Cancel")
        try await page.click("End…")
        try await page.click("Delete the session with its contents")
        try await page.click("Do it")
        try await page.seeText("No sessions yet")
        expect(try await scene.api.get("/v1/sessions/nightly"), 404)
    }

    @Test func `A download is created with headers, a name, a time and a destination`() async throws {
        let files = TemporaryFolder()
        let scene = try await Scene(["--files-root", "out=\(files.path)"])
        scene.origin.serve("/a", .text("new"))
        files.write(Array("old".utf8), to: "a.txt")
        let page = try await PageDriver(scene.service, at: "/#/sessions/s")
        try await page.click("New download")
        try await page.fill("URLs", scene.origin.url("/a"))
        #expect(try await page.browser.evaluate("t.isSeen(document.querySelector('[name=headers]'))") == false)
        try await page.click("More")
        try await page.fill("Name", "All of it")
        try await page.fill("Headers", "no header")
        try await page.choose("Destination", "root")
        try await page.fill("Root or bucket", "out")
        try await page.fill("Path or key", "a.txt")
        try await page.click("Replace what is there")
        try await page.click("Hand over")
        try await page.seeText("A header is Name: value", in: "dialog")
        try await page.fill("Headers", "X-Token: one: two\nAccept: text/plain\naccept: text/html")
        try await page.browser.evaluate("t.labelled('Not before').value = '2020-01-02T03:04'")
        try await page.click("Hand over")
        try await page.click("Task 1 is made.")
        try await page.seeText("All of it", in: "h1")
        let task = try await scene.completed(1)
        #expect(task["outcome"] == "succeeded")
        #expect(task["taskDescription"] == "All of it")
        #expect(task["earliestBeginDate"] == "2020-01-02T03:04:00.000Z")
        #expect(task["destination"] == ["root": "out", "path": "a.txt", "replace": true])
        #expect(task["originalRequest"]["sensitiveHeaders"] == ["X-Token", "Accept"])
        #expect(task["originalRequest"]["headers"] == ["X-Token": "<redacted>", "Accept": "<redacted>"])
        #expect(readFile(files.file("a.txt")) == Array("new".utf8))
        let sent = try #require(scene.origin.requests("/a").first)
        #expect(sent.fields["X-Token"] == "one: two")
        #expect(sent.fields["Accept"] == "text/plain, text/html")
        // Two contents do not fit in one place.
        try await page.go("#/sessions/s")
        try await page.click("New download")
        try await page.fill("URLs", "\(scene.origin.url("/a"))\n\(scene.origin.url("/b"))")
        try await page.click("More")
        try await page.choose("Destination", "bucket")
        try await page.fill("Root or bucket", "media")
        try await page.fill("Path or key", "a")
        try await page.click("Hand over")
        try await page.seeText("A destination is for a single URL", in: "dialog")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Many tasks are changed at once, selected ones or all matches`() async throws {
        let scene = try await Scene()
        for number in 1...6 {
            try await scene.download("/a\(number)", ["state": "suspended", "group": number > 3 ? "b" : "a"])
        }
        let page = try await PageDriver(scene.service, at: "/#/sessions/s")
        try await page.see("t.named('body', 'input', 'Select task 2') != null")
        for number in [1, 2] {
            try await page.browser.evaluate("t.named('body', 'input', 'Select task \(number)').click()")
        }
        try await page.seeText("2 selected")
        try await page.click("Cancel", in: ".bulk")
        try await page.seeText("Keep them", in: "dialog footer")
        try await page.click("Cancel 2 tasks")
        for number in [1, 2] { #expect(try await scene.completed(number)["outcome"] == "cancelled") }
        #expect(try await scene.task(3)["state"] == "suspended")
        try await page.choose("Search in", "group")
        try await page.fill("Search tasks", "b")
        try await page.browser.press("Enter")
        try await page.see("document.querySelectorAll('tbody tr').length == 3")
        try await page.click("Cancel", in: ".bulk")
        try await page.seeText("all that are: b")
        #expect(try await page.count("nav[aria-label='Filter by state'] .count") == 0)
        try await page.click("Keep them as they are")
        try await page.click("Resume", in: ".bulk")
        try await page.click("Resume those that match")
        for number in 4...6 { #expect(try await scene.completed(number)["outcome"] == "httpError") }
        #expect(try await scene.task(3)["state"] == "suspended")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Questions are answered`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        let basic = "Basic " + Base64Text.encode(Array("ann:secret".utf8))
        let demand = Misbehaviour.demand(authorization: basic, challenge: "Basic realm=\"archive\"")
        scene.origin.serve("/guarded", .text("guarded"), always: [demand])
        scene.origin.serve("/new", .text("new"))
        let guarded = try await scene.download("/guarded")
        let delayed = try await scene.download("/old", ["confirmBeforeStart": true])
        let page = try await PageDriver(scene.service, at: "/#/questions")
        try await page.seeText("archive")
        try await page.click("Give a credential…")
        try await page.fill("User", "ann")
        try await page.fill("Password", "secret")
        try await page.click("Use it")
        #expect(try await scene.completed(guarded)["outcome"] == "succeeded")
        try await page.click("Begin with another request…")
        try await page.fill("URL", scene.origin.url("/new"))
        try await page.fill("Header fields", "no header")
        try await page.click("Begin", in: "dialog")
        try await page.seeText("A header is Name: value", in: "dialog")
        try await page.fill("Header fields", "X-Token: one: two")
        try await page.click("Begin", in: "dialog")
        #expect(try await scene.completed(delayed)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/new").first?.fields["X-Token"] == "one: two")
        try await page.seeText("Nothing to answer")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `An attempt without a completion is shown with its time limit`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver, ["launchDeadline": 5])
        try await scene.download("/nowhere")
        try await receiver.waitForDelivery()
        let page = try await PageDriver(scene.service, at: "/#/launches")
        try await page.seeText("accepted, not completed in time", in: "tbody")
        try await page.click("Handle events")
        try await page.seeText("accepted, not completed within 5 s", in: ".bad-text")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Launches are redelivered, events acknowledged, and contents saved`() async throws {
        let scene = try await Scene()
        // However long the browser takes to start, the next attempt is the one that the page requests.
        let receiver = try Receiver { _ in .status(503, [("Retry-After", "3600")]) }
        try await scene.launches(to: receiver)
        scene.origin.serve("/file.txt", .text("the content"))
        let number = try await scene.download("/file.txt")
        try await receiver.waitForDelivery()
        let page = try await PageDriver(scene.service, at: "/#/launches")
        receiver.respond { _ in .launched }
        try await page.click("Redeliver")
        try await receiver.waitForDelivery(count: 2)
        try await page.click("Handle events")
        try await page.see("document.querySelectorAll('tbody tr').length == 2")
        let folder = TemporaryFolder()
        try await page.browser.send(
            "Page.setDownloadBehavior", ["behavior": "allow", "downloadPath": .string(folder.path)])
        try await page.go("#/sessions/s/tasks/\(number)")
        try await page.click("Save content")
        try await eventually("the file is saved") { readFile(folder.file("file.txt")) == Array("the content".utf8) }
        try await page.go("#/sessions/s/events")
        try await page.click("Acknowledge all…")
        try await page.click("Acknowledge")
        try await eventually("all events are acknowledged") {
            let session = try await scene.session()
            return session["acknowledgedSeq"] == session["lastEventSeq"]
        }
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `The app's webhook, fetches and force quit can be used`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver { $0.type == "app.performFetch" ? .json(["result": "noData"]) : .launched }
        let page = try await PageDriver(scene.service, at: "/#/app")
        try await page.click("Change…")
        try await page.fill("URL", receiver.url)
        try await page.click("Change")
        try await page.seeText(receiver.url, in: "main")
        try await page.click("Ping")
        try await receiver.waitForDelivery(type: "webhook.ping")
        try await page.click("Fetch now")
        try await page.seeText("No data")
        try await page.click("Interval…")
        try await page.choose("Interval", "minimum")
        try await page.click("Set")
        try await page.seeText("minimum", in: "main")
        try await page.click("Force quit…")
        try await page.click("Force quit", in: "dialog")
        try await page.click("Activate")
        try await page.seeText("Active", in: "h1")
        #expect(try await scene.api.get("/v1/app").json["state"] == "active")
        #expect(page.browser.takeComplaints() == [])
    }

    @Test func `Every control can be used with the keyboard`() async throws {
        let scene = try await Scene()
        for number in 1...3 { try await scene.download("/\(number)", ["state": "suspended"]) }
        let page = try await PageDriver(scene.service, at: "/#/sessions/s")
        try await page.see("document.querySelectorAll('[data-row]').length == 3")
        for key in ["j", "j", "x"] { try await page.browser.press(key) }
        try await page.seeText("1 selected")
        try await page.browser.press("Enter")
        try await page.seeText("Task 2", in: "h1")
        try await page.browser.press("u")
        try await page.see("location.hash == '#/sessions/s'")
        try await page.see("document.querySelectorAll('[data-row]').length == 3")
        try await page.browser.press("/")
        try await page.see("document.activeElement.type == 'search'")
        try await page.browser.press("Escape")
        for key in ["g", "l"] { try await page.browser.press(key) }
        try await page.see("location.hash == '#/launches'")
        try await page.browser.press("?")
        try await page.see("document.querySelector('dialog').open")
        try await page.browser.press("Escape")
        try await page.see("!document.querySelector('dialog').open")
        // The first tab stop skips the header.
        try await page.browser.evaluate("document.body.focus(); document.activeElement.blur()")
        try await page.browser.evaluate("document.getElementById('skip').focus()")
        try await page.browser.press("Enter")
        try await page.see("document.activeElement.id == 'main'")
        #expect(page.browser.takeComplaints() == [])
    }
}
