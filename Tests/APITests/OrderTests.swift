import Core
import Testing
import Wire

@testable import API

@Suite struct OrderTests {
    private func order(_ json: WireJSON) throws -> TaskOrder {
        try TaskOrder(checking: TaskCreation(from: json), at: "/tasks/3", traceparent: nil)
    }

    @Test func `A URL that libcurl rejects is reported with its position`() throws {
        #expect(throws: JSONError.self) { try order(["kind": "download", "request": ["url": "file:///etc/passwd"]]) }
        let error = try #require(throws: JSONError.self) {
            try order(["kind": "download", "request": ["url": "http://a%20b.example./"]])
        }
        #expect(!error.faults.isEmpty)
        // Forbidden addresses are accepted, and refused when the task runs.
        #expect(try order(["kind": "download", "request": ["url": "http://169.254.169.254/"]]).body == nil)
    }
}
