import Core
import Formats

/// Records with every member set, for tests of their representations.
enum Records {
    static let time = Timestamp(milliseconds: 1_800_000_000_000)

    static func specification(kind: TaskKind = .download) -> TaskSpecification {
        var specification = TaskSpecification(
            kind: kind,
            request: TransferRequest(
                url: "https://a.example/x", method: kind == .upload ? "PUT" : "GET",
                headers: HTTPFields([
                    HTTPField(name: "Authorization", value: "Bearer hush"), HTTPField(name: "Accept", value: "*/*"),
                    HTTPField(name: "X-Mine", value: "hush"),
                ]), sensitiveHeaders: ["x-mine"]))
        specification.clientTaskId = "c"
        specification.group = "g"
        specification.taskDescription = "d"
        specification.metadata = ["b": "2", "a": "1"]
        specification.earliestBeginDate = time
        specification.countOfBytesClientExpectsToSend = 1
        specification.countOfBytesClientExpectsToReceive = 2000
        specification.expectedDigest = ContentDigest(algorithm: .md5, value: String(repeating: "0", count: 32))
        specification.maximumContentLength = 3000
        specification.ifNoneMatch = "\"e\""
        specification.acceptableStatusCodes = [StatusRange(200, 299), StatusRange(404, 404)]
        specification.destination = Destination(root: "r", path: "p", replace: true)
        specification.retryOf = 3
        return specification
    }

    static func task(
        _ stage: TaskLife.Stage = .queued, progress: TaskProgress? = nil,
        specification: TaskSpecification = specification()
    ) -> TaskRecord {
        task(.running(stage, deadline: time + .seconds(60)), progress: progress, specification: specification)
    }

    static func task(
        _ life: TaskLife, progress: TaskProgress? = nil, specification: TaskSpecification = specification()
    ) -> TaskRecord {
        TaskRecord(
            id: TaskID(1), session: SessionID(1), sessionIdentifier: "s", app: AppID(1), number: 7, life: life,
            specification: specification, progress: progress, createdAt: time, startedAt: time, revision: 4)
    }

    static var response: TaskResponse {
        TaskResponse {
            $0.statusCode = 200
            $0.headers = HTTPFields([
                HTTPField(name: "Set-Cookie", value: "a=hush"), HTTPField(name: "set-cookie", value: "b=hush"),
                HTTPField(name: "Vary", value: "a"), HTTPField(name: "vary", value: "b"),
            ])
            $0.mimeType = "text/plain"
            $0.expectedContentLength = 1000
            $0.suggestedFilename = "x.txt"
            $0.url = "https://b.example/y"
        }
    }

    static var completed: TaskRecord {
        var progress = TaskProgress()
        progress.redirects = [
            RedirectRecord(statusCode: 302, url: "https://a.example/z"),
            RedirectRecord(statusCode: 302, url: "https://b.example/y"),
        ]
        progress.currentURL = "https://b.example/y"
        progress.attempts.attempts = 2
        progress.lastAttempt = AttemptRecord(
            number: 2, startedAt: time, endedAt: time + .seconds(1), offset: 10, statusCode: 200, error: nil)
        progress.countOfBytesReceived = 1500
        var result = TaskResult(progress: progress)
        result.response = response
        result.contentLength = 1000
        var task = task(.completed(.succeeded, result, at: time + .seconds(2)))
        task.content = ContentRecord(
            length: 1000, digest: ContentDigest(algorithm: .sha256, value: String(repeating: "a", count: 64)),
            expiresAt: time + .seconds(60), isExpired: false)
        return task
    }
}
