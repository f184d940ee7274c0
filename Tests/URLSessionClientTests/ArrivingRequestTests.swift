import Testing

@testable import URLSessionClient

struct ArrivingRequestTests {
    private static let text = "POST /launches HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nWebhook-Id:  m \r\n\r\nbody!"

    @Test(arguments: [1, 2, 3, 5, 1000])
    func `A request is whole with its body, however it arrives`(_ size: Int) throws {
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
    func `A head without an end costs its length, however small its pieces`() {
        var request = ArrivingRequest()
        for _ in 0..<200_000 { if request.add([0x61]) != nil { Issue.record("It is whole.") } }
        #expect(request.count == 200_000)
    }
}
