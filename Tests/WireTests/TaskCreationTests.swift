import Testing
import Wire

/// `pointer code` of every fault, in the order of discovery.
func faults<Shape: JSONReadable>(_ type: Shape.Type, _ text: String) -> [String] {
    do {
        _ = try Shape(parsing: Array(text.utf8))
        return []
    } catch { return error.faults.map { "\($0.pointer) \($0.code.rawValue)" } }
}

private func taskFaults(_ text: String) -> [String] { faults(TaskCreation.self, text) }

private func download(_ members: String) -> String {
    #"{"kind":"download","request":{"url":"https://example.com/a"},"# + members + "}"
}

private func upload(_ members: String) -> String {
    #"{"kind":"upload","request":{"url":"https://example.com/a"},"# + members + "}"
}

private let full = """
    {"kind": "download",
     "request": {"url": "https://example.com/a.bin", "method": "GET", "headers": {"Accept": "*/*"}, "sensitiveHeaders": ["X-Api-Key"]},
     "state": "suspended", "clientTaskId": "a-17", "group": "nightly", "taskDescription": "A", "metadata": {"row": "17"},
     "priority": 0.25, "earliestBeginDate": "2026-12-01T00:00:00Z", "confirmBeforeStart": true,
     "countOfBytesClientExpectsToSend": 200, "countOfBytesClientExpectsToReceive": 1048576,
     "expectedDigest": {"algorithm": "sha-256", "value": "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
     "maximumContentLength": 10485760,
     "ifNoneMatch": "\\"etag\\"", "acceptableStatusCodes": ["200-299", 404], "failOnHTTPError": true,
     "destination": {"root": "NAME", "path": "dir/a.bin", "replace": true}}
    """

@Suite struct TaskCreationTests {
    @Test func `All members are read`() throws {
        let task = try TaskCreation(parsing: Array(full.utf8))
        #expect(task.kind == .download)
        #expect(task.request?.url == "https://example.com/a.bin")
        #expect(task.request?.headers == ["Accept": "*/*"])
        #expect(task.request?.sensitiveHeaders == ["X-Api-Key"])
        #expect(task.state == .suspended)
        #expect(task.clientTaskId == "a-17")
        #expect(task.group == "nightly")
        #expect(task.taskDescription == "A")
        #expect(task.metadata == ["row": "17"])
        #expect(task.priority == 0.25)
        #expect(task.earliestBeginDate == "2026-12-01T00:00:00Z")
        #expect(task.confirmBeforeStart)
        #expect(task.countOfBytesClientExpectsToSend == 200)
        #expect(task.countOfBytesClientExpectsToReceive == 1_048_576)
        #expect(task.expectedDigest?.value == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(task.maximumContentLength == 10_485_760)
        #expect(task.ifNoneMatch == "\"etag\"")
        #expect(task.acceptableStatusCodes == ["200-299", "404"])
        #expect(task.failOnHTTPError)
        #expect(task.destination == Destination(root: "NAME", path: "dir/a.bin", replace: true))
        #expect(try TaskCreation(parsing: task.jsonBytes) == task)
    }

    @Test(arguments: ["a", "é", "🚀", "e\u{301}"])
    func `Descriptions and values of metadata have at most 4096 Unicode scalars`(_ text: String) {
        let longest = String(repeating: text, count: 4096 / text.unicodeScalars.count)
        func faulty(_ value: String) -> [String] {
            taskFaults(download(#""taskDescription":"\#(value)","metadata":{"k":"\#(value)"}"#))
        }
        #expect(faulty(longest) == [])
        #expect(faulty(longest + "a") == ["/taskDescription invalid-value", "/metadata/k invalid-value"])
        let session = #"{"sessionDescription":"\#(longest)"}"#
        #expect(faults(SessionChange.self, session) == [])
    }

    @Test func `Kind and url are enough`() throws {
        let task = try TaskCreation(parsing: Array(#"{"kind":"download","request":{"url":"http://h/"}}"#.utf8))
        #expect(task == .download(TransferRequest(url: "http://h/")))
        #expect(
            String(decoding: task.jsonBytes, as: UTF8.self)
                == #"{"kind":"download","request":{"url":"http://h/","headers":{}}}"#)
    }

    @Test(arguments: [
        (#"{"id":"body_4"}"#, BodySource.id("body_4")), (#"{"text":"é"}"#, .text("é")),
        (#"{"base64":"AAH/"}"#, .bytes([0, 1, 255])), (#"{"json":{"a":[1,null]}}"#, .json(["a": [1, nil]])),
        (#"{"json":null}"#, .json(nil)), (#"{"root":"in","path":"a/b"}"#, .file(root: "in", path: "a/b")),
        (#"{"task":7}"#, .task(7)),
    ])
    func `An upload has its body in each form`(_ text: String, _ body: BodySource) throws {
        let task = try TaskCreation(parsing: Array(upload("\"body\":" + text).utf8))
        #expect(task == .upload(TransferRequest(url: "https://example.com/a"), body: body))
        #expect(try TaskCreation(parsing: task.jsonBytes) == task)
    }

    @Test func `A download by POST has its body in its request`() throws {
        let text = #"{"kind":"download","request":{"url":"http://h/","method":"POST","body":{"text":"q"}}}"#
        let task = try TaskCreation(parsing: Array(text.utf8))
        #expect(task.request?.body == .text("q"))
        #expect(try TaskCreation(parsing: task.jsonBytes) == task)
    }

    @Test func `Resume data replaces the request`() throws {
        let task = try TaskCreation(parsing: Array(#"{"kind":"download","resumeData":"x","priority":1}"#.utf8))
        #expect(task.resumeData == "x" && task.request == nil && task.priority == 1)
        #expect(try TaskCreation(parsing: task.jsonBytes) == task)
    }

    @Test(arguments: [
        ("{}", ["/kind invalid-value", "/request invalid-value"]),
        (#"{"kind":"data","request":{"url":"http://h/"}}"#, ["/kind invalid-value"]),
        (#"{"kind":"download"}"#, ["/request invalid-value"]),
        (#"{"kind":"download","request":null}"#, ["/request invalid-value"]),
        (#"{"kind":"download","request":{}}"#, ["/request/url invalid-value"]),
        (
            #"{"kind":"download","request":{"urll":"http://h/"}}"#,
            ["/request/url invalid-value", "/request/urll unknown-member"]
        ),
        (#"{"kind":"download","request":{"url":"http://h/","body":{"text":"x"}}}"#, ["/request/body invalid-value"]),
        (#"{"kind":"download","request":{"url":"http://h/"},"body":{"text":"x"}}"#, ["/body invalid-value"]),
        (#"{"kind":"upload","request":{"url":"http://h/"}}"#, ["/body invalid-value"]),
        (
            #"{"kind":"upload","request":{"url":"http://h/","method":"GET"},"body":{"text":""}}"#,
            ["/request invalid-value"]
        ),
        (
            #"{"kind":"upload","request":{"url":"http://h/","body":{"text":"x"}},"body":{"text":""}}"#,
            ["/request/body invalid-value"]
        ),
        (#"{"kind":"upload","resumeData":"x"}"#, ["/resumeData invalid-value"]),
        (#"{"kind":"download","resumeData":"x","request":{"url":"http://h/"}}"#, ["/request invalid-value"]),
        (download(#""state":"completed""#), ["/state invalid-value"]),
        (download(#""state":null"#), ["/state invalid-value"]),
        (download(#""clientTaskId":"""#), ["/clientTaskId invalid-value"]),
        (download(#""clientTaskId":"a\u0007""#), ["/clientTaskId invalid-value"]),
        (download(#""priority":1.01"#), ["/priority invalid-value"]),
        (download(#""priority":-0.1"#), ["/priority invalid-value"]),
        (download(#""priority":"1""#), ["/priority invalid-value"]),
        (download(#""metadata":{"a":1}"#), ["/metadata/a invalid-value"]),
        (download(#""metadata":{"e\u0301":"","\u00e9":""}"#), ["/metadata/é invalid-value"]),
        (download(#""metadata":[]"#), ["/metadata invalid-value"]),
        (download(#""earliestBeginDate":"2026-12-01""#), ["/earliestBeginDate invalid-value"]),
        (download(#""earliestBeginDate":1"#), ["/earliestBeginDate invalid-value"]),
        (download(#""maximumContentLength":-1"#), ["/maximumContentLength invalid-value"]),
        (download(#""maximumContentLength":1.0"#), ["/maximumContentLength invalid-value"]),
        (download(#""expectedDigest":{"algorithm":"sha-1","value":""}"#), ["/expectedDigest/algorithm invalid-value"]),
        (download(#""expectedDigest":{"algorithm":"md5","value":"00"}"#), ["/expectedDigest/value invalid-value"]),
        (download(#""segments":0"#), ["/segments invalid-value"]),
        (download(#""segments":17"#), ["/segments invalid-value"]),
        (download(#""segments":"many""#), ["/segments invalid-value"]),
        (download(#""mirrors":["ftp://a/"]"#), ["/mirrors/0 invalid-value"]),
        (download(#""mirrors":["http://a/","http://a/"]"#), ["/mirrors invalid-value"]),
        (download(#""pieces":{"length":1024,"algorithm":"md5","values":[]}"#), ["/pieces/values invalid-value"]),
        (
            download(#""pieces":{"length":1,"algorithm":"md5","values":["x"]}"#),
            ["/pieces/length invalid-value", "/pieces/values/0 invalid-value"]
        ),
        (download(#""ifNoneMatch":"etag""#), ["/ifNoneMatch invalid-value"]),
        (download(#""acceptableStatusCodes":["2xx"]"#), ["/acceptableStatusCodes/0 invalid-value"]),
        (download(#""acceptableStatusCodes":["299-200"]"#), ["/acceptableStatusCodes/0 invalid-value"]),
        (download(#""acceptableStatusCodes":[20]"#), ["/acceptableStatusCodes/0 invalid-value"]),
        (download(#""acceptableStatusCodes":[true]"#), ["/acceptableStatusCodes/0 invalid-value"]),
        (download(#""acceptableStatusCodes":[]"#), ["/acceptableStatusCodes invalid-value"]),
        (download(#""failOnHTTPError":0"#), ["/failOnHTTPError invalid-value"]),
        (download(#""destination":{"root":"r","path":"../a"}"#), ["/destination/path invalid-value"]),
        (download(#""destination":{"root":"r","path":"/a"}"#), ["/destination/path invalid-value"]),
        (download(#""destination":{"root":"r","path":"a//b"}"#), ["/destination/path invalid-value"]),
        (download(#""destination":{"root":"r","path":"a/"}"#), ["/destination/path invalid-value"]),
        (download(#""destination":{"root":"r","path":"a","mode":1}"#), ["/destination/mode unknown-member"]),
        (upload(#""body":{}"#), ["/body invalid-value"]),
        (upload(#""body":{"text":"a","json":1}"#), ["/body invalid-value"]),
        (upload(#""body":{"base64":"A"}"#), ["/body/base64 invalid-value"]),
        (upload(#""body":{"task":0}"#), ["/body/task invalid-value"]),
        (upload(#""body":{"root":"r"}"#), ["/body/path invalid-value"]),
        (upload(#""body":{"text":""# + String(repeating: "x", count: 65_537) + #""}"#), ["/body/text invalid-value"]),
    ])
    func `Members that do not fit are reported with their positions`(_ text: String, _ expected: [String]) {
        #expect(taskFaults(text) == expected)
    }

    @Test(arguments: [
        "Host", "content-length", "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
        "Proxy-Authorization", "Range", "If-Range", "Accept-Encoding", "a b", "a:", "", "é",
    ])
    func `Headers that the service sets are refused`(_ name: String) {
        let text = #"{"kind":"download","request":{"url":"http://h/","headers":{""# + name + #"":"x"}}}"#
        #expect(taskFaults(text) == ["/request/headers/\(name) invalid-value"])
    }

    @Test func `Uploads may set headers that only resuming downloads need`() {
        #expect(
            taskFaults(#"{"kind":"upload","request":{"url":"http://h/","headers":{"Range":"x"}},"body":{"text":""}}"#)
                == [])
    }

    @Test func `Header values, doubles and amounts are bounded`() {
        func headers(_ text: String) -> [String] {
            taskFaults(#"{"kind":"download","request":{"url":"http://h/","headers":{"# + text + "}}}")
        }
        #expect(headers(#""A":"x\r\nB: y""#) == ["/request/headers/A invalid-value"])
        #expect(headers(#""A":"é""#) == ["/request/headers/A invalid-value"])
        #expect(headers(#""A":"1","a":"2""#) == ["/request/headers/a invalid-value"])
        #expect(headers("\"A\":\"\(String(repeating: "x", count: 8193))\"") == ["/request/headers/A invalid-value"])
        let many = (0...100).map { "\"H\($0)\":\"\"" }.joined(separator: ",")
        #expect(headers(many) == ["/request/headers invalid-value"])
        let long = (0..<5).map { "\"H\($0)\":\"\(String(repeating: "x", count: 8000))\"" }.joined(separator: ",")
        #expect(headers(long) == ["/request/headers invalid-value"])
    }

    @Test func `A batch reports the position of each fault`() {
        let good = #"{"kind":"download","request":{"url":"http://h/"}}"#
        let bad = #"{"kind":"download","request":{"url":"ftp://h/"},"x":1}"#
        #expect(
            faults(BatchCreation.self, #"{"tasks":[\#(good),\#(bad),3]}"#) == [
                "/tasks/1/request/url invalid-value", "/tasks/1/x unknown-member", "/tasks/2 invalid-value",
            ])
        #expect(faults(BatchCreation.self, #"{"tasks":[]}"#) == ["/tasks invalid-value"])
        let many = Array(repeating: "{}", count: 10_001).joined(separator: ",")
        #expect(faults(BatchCreation.self, #"{"tasks":[\#(many)]}"#) == ["/tasks invalid-value"])
    }

    @Test func `A change distinguishes absent from null`() throws {
        let change = try TaskChange(parsing: Array(#"{"taskDescription":null,"request":{"headers":{}}}"#.utf8))
        #expect(change.taskDescription == .clear)
        #expect(change.metadata == .unchanged)
        #expect(change.priority == nil)
        #expect(change.request == RequestChange { $0.headers = [:] })
        #expect(
            faults(TaskChange.self, #"{"priority":null,"state":"running","request":null}"#) == [
                "/priority invalid-value", "/request invalid-value", "/state unknown-member",
            ])
    }
}
