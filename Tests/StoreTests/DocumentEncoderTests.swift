import Base
import Core
import Foundation
import Testing

@testable import Store

@Suite struct DocumentEncoderTests {
    private func returned<Value: Codable>(_ value: Value) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(DocumentEncoder.encode(value)))
    }

    @Test func `a task's result with everything in it comes back as it was`() throws {
        var progress = TaskProgress()
        progress.attempts.attempts = 3
        progress.lastAttempt = AttemptRecord(
            number: 2, startedAt: Timestamp(milliseconds: 5), endedAt: Timestamp(milliseconds: 9), offset: 7,
            statusCode: 503,
            error: TaskError(
                .timedOut, "quote \" backslash \\ line \n tab \t é 🎈", failingURL: "http://a/",
                underlying: TaskError.Underlying(domain: "curl", code: "28", message: "")))
        progress.resume = ResumePoint(url: "http://a/", entityTag: "\"x\"", totalLength: 9, offset: 4)
        progress.redirects = [RedirectRecord(statusCode: 302, url: "http://b/")]
        progress.transactions = [TransactionMetrics(url: "http://a/", fetchStartDate: Timestamp(milliseconds: -1))]
        progress.authentication = [AuthenticationStep(questionId: "qstn_1", disposition: .useCredential)]
        var result = TaskResult(progress: progress)
        result.response = TaskResponse(
            statusCode: 200, headers: HTTPFields([HTTPField(name: "A", value: "\u{1}")]), mimeType: nil,
            expectedContentLength: .max, suggestedFilename: "f", url: "http://a/")
        result.contentDigest = ContentDigest(algorithm: .sha256, value: "ab")
        #expect(try returned(result) == result)
    }

    @Test func `a specification with everything in it comes back as it was`() throws {
        var task = TaskSpecification(
            kind: .upload,
            request: TransferRequest(
                url: "https://a/", method: "PUT", headers: HTTPFields([HTTPField(name: "X", value: "y")]),
                sensitiveHeaders: ["X"]))
        task.metadata = ["a": "b", "": "\u{0}"]
        task.priority = 0.1
        task.earliestBeginDate = Timestamp(milliseconds: .max)
        task.destination = Destination(root: "r", path: "p", replace: true)
        task.acceptableStatusCodes = []
        #expect(try returned(task) == task)
    }

    @Test(arguments: [
        LaunchState.pending(attempts: 1, nextAttemptAt: Timestamp(milliseconds: 4)),
        .delivering(attempt: 2, leaseUntil: Timestamp(milliseconds: 1)), .parked(attempts: 0, reason: .noURL),
        .completed(at: Timestamp(milliseconds: 0)),
    ])
    func `an enum with values comes back as it was`(_ state: LaunchState) throws {
        #expect(try returned(state) == state)
    }

    @Test func `configurations, conditions and bare values come back as they were`() throws {
        var configuration = SessionConfiguration()
        configuration.retryPolicy = .custom(RetryPolicy.Settings(statusCodes: [500, 503]))
        configuration.pinnedPublicKeys = ["a": ["sha256/x"], "b": []]
        #expect(try returned(configuration) == configuration)
        #expect(try returned(Conditions()) == Conditions())
        #expect(try returned([Int]()) == [])
        #expect(try returned([[String: Int?]]()) == [])
        #expect(try returned(["a": [1.5, -0.0, 1e300]]) == ["a": [1.5, -0.0, 1e300]])
        #expect(try returned("\u{7F}\"") == "\u{7F}\"")
    }

    @Test func `numbers that JSON lacks are refused`() {
        #expect(throws: EncodingError.self) { try DocumentEncoder.encode(Double.infinity) }
    }
}
