import Testing

@testable import URLSessionClient

struct ArrivingRequestTests {
    private static let text = "POST /launches HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nWebhook-Id:  m \r\n\r\nbody!"

    @Test(arguments: [1, 2, 3, 5, 1000])
    func `A request is complete with its body, in pieces of any size`(_ size: Int) throws {
        var request = ArrivingRequest()
        var rest = Array(Self.text.utf8)[...]
        var whole = request.add([])
        while whole == nil, !rest.isEmpty {
            whole = request.add(Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        let (headers, body) = try #require(whole)
        #expect(headers == ["host": "h", "content-length": "4", "webhook-id": "m"])
        #expect(body.elementsEqual("body".utf8))
    }

    @Test(.timeLimit(.minutes(1)))
    func `A head without an end is refused, and costs its length`() {
        var request = ArrivingRequest()
        for _ in 0..<60_000 { if request.add([0x61]) != nil { Issue.record("It is complete.") } }
        #expect(!request.isRefused)
        for _ in 0..<6000 { if request.add([0x61]) != nil { Issue.record("It is complete.") } }
        #expect(request.isRefused)
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\na", "POST / HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
    ])
    func `A request that is no POST of a length is refused`(_ text: String) {
        var request = ArrivingRequest()
        let complete = request.add(Array(text.utf8))
        #expect(complete == nil && request.isRefused)
    }
}
