import Core
import TestSupport
import Testing

struct UploadKillTests {
    @Test func `An upload resumes after SIGKILLs, and arrives unchanged`() async throws {
        let server = try DraftServer()
        server.answer(201, [("X-Target", "yes")], body: "stored")
        let files = TemporaryFolder()
        let block = Content.bytes(seed: 3, length: 1 << 20)
        var bytes: [UInt8] = []
        for number in 0..<16 {
            var block = block
            block[0] = UInt8(number)
            bytes += block
        }
        files.write(bytes, to: "big")
        let service = try await ServiceProcess(["--files-root", "root=\(files.path)"])
        let opened = try await service.api.put("/v1/sessions/s", ["configuration": ["bandwidthLimit": 2_000_000]])
        #expect(opened.status == 201)
        let created = try await service.api.post(
            "/v1/sessions/s/tasks",
            [
                "kind": "upload", "request": ["url": .string(server.url("/up"))],
                "body": ["root": "root", "path": "big"],
            ])
        #expect(created.status == 201)
        for kill in 1...3 {
            try await eventually("bytes arrive before kill \(kill)") {
                server.methods.count == 2 * kill - 1 && server.bytesReceived >= kill * 2 << 20
            }
            try await service.kill()
            // The server must not take the next append for a concurrent one.
            try await eventually("the server sees it gone") { server.openConnections == 0 }
            try await service.start()
        }
        let task = try await eventually("the end of the task", within: .seconds(120)) { () -> JSON? in
            let task = try await service.api.get("/v1/sessions/s/tasks/1?wait=5").json
            return task["state"].string == "completed" ? task : .none
        }
        #expect(task["outcome"].string == "succeeded")
        #expect(task["response"]["headers"]["X-Target"].string == "yes")
        #expect(task["countOfBytesSent"].int == 16 << 20)
        #expect(server.finished.map(\.sha256) == [Content.sha256(of: bytes)])
        #expect(server.methods == ["PUT", "HEAD", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH"])
        #expect(server.bytesReceived == 16 << 20)
        #expect(server.intrusions == 0)
        let events = try await service.api.get("/v1/sessions/s/events").json["items"].array ?? []
        #expect(events.filter { $0["type"].string == "task.didResumeAtOffset" }.count == 3)
    }
}
