import Base
import Core
import TestSupport
import Testing

/// The page's views of sets in a browser.
@Suite(.serialized) struct PageSetTests {
    @Test func `A version is shown with its progress, retried, and made current again`() async throws {
        let scene = try await Scene(configuration: nil)
        let gate = Gate()
        scene.origin.serve("/a", .text("one"))
        scene.origin.serve("/b", .generated(seed: 1, length: 1 << 20), always: [.holdBody(after: 1000, gate)])
        try await scene.makeSession("mirror")
        try await scene.api.put("/v1/sets/models")
        func create(_ version: String, _ paths: [String]) async throws {
            let files = paths.map { path -> JSON in
                ["path": .string(String(path.dropFirst())), "request": ["url": .string(scene.origin.url(path))]]
            }
            let creation: JSON = ["version": .string(version), "session": "mirror", "files": .array(files)]
            #expect(try await scene.api.post("/v1/sets/models/versions", creation).status == 201)
        }
        try await create("1", ["/a", "/b"])
        let page = try await PageDriver(scene.service, at: "/#/sets")
        try await page.seeText("models", in: "tbody")
        try await page.click("models", in: "tbody")
        try await page.seeText("1 of 2 files", in: "tbody")
        try await page.seeText("Fetching", in: "tbody")
        gate.open()
        try await page.seeText("Published", in: "tbody")
        try await page.seeText("current", in: "tbody .tag")

        try await create("2", ["/a", "/later"])
        try await page.seeText("Failed", in: "tbody")
        try await page.click("2", in: "tbody")
        try await page.seeText("later", in: "table")
        try await page.seeText("404", in: "table")
        scene.origin.serve("/later", .text("two"))
        try await page.click("Retry")
        try await page.seeText("Published", in: "h1")
        try await page.click("models", in: ".crumbs")
        try await page.click("Make current", in: "tbody")
        try await eventually("version 1 is current") {
            try await scene.api.get("/v1/sets/models").json["current"]["version"] == "1"
        }
        try await page.click("Delete…")
        try await page.click("Delete", in: "dialog .dialog-foot")
        try await page.seeText("No sets yet")
        // The view may have been refreshed between the deletion and the change to the list.
        let complaints = page.browser.takeComplaints()
        #expect(complaints.allSatisfy { $0.contains("404") && $0.contains("/v1/sets/models") }, "\(complaints)")
    }
}
