/// One faulty or unusual reaction of an origin to a request.
package enum Misbehaviour: Sendable {
    /// The end of a connection. With `silence` it stays open without another byte until the peer leaves.
    package enum Ending: Sendable { case finish, reset, silence }

    /// The fault in the `Content-Range` of a 206.
    package enum PartialLie: Sendable {
        /// The announced and sent range starts this many bytes later (or earlier, if negative).
        case shifted(Int)
        /// The total differs from the content's.
        case total(String)
        /// No `Content-Range` at all.
        case missing
        /// The line as given.
        case verbatim(String)
    }

    /// Waits before the first byte of the response.
    case delayHead(Duration)
    /// Sends the body in pieces of `size` bytes with a pause after each.
    case trickle(size: Int, pause: Duration)
    /// Closes after so many body bytes.
    case cut(after: Int, Ending = .finish)
    /// Sends so many body bytes, then nothing, with the connection open.
    case stall(after: Int)
    /// Reads the request and closes without a response.
    case noAnswer(Ending = .finish)
    /// Reads the head of the request, not its body, and responds at once; `raw` then resets, every other one closes in
    /// order.
    case earlyAnswer
    /// Reads so many bytes of the request's body, then closes.
    case cutUpload(after: Int, Ending = .finish)
    /// Reads the request's body one byte at a time, with a pause before each.
    case sip(pause: Duration)
    /// Sends these `Content-Length` values, one line each, instead of the right one.
    case contentLength([String])
    /// Sends `Transfer-Encoding: chunked` with chunks of so many bytes.
    case chunked(size: Int = 1024)
    /// Sends neither length nor chunks: closing ends the body.
    case closeDelimited
    /// Sends a body that never ends, without a length.
    case endless
    /// Sends exactly these bytes, then ends the connection.
    case raw([UInt8], Ending = .finish)
    /// Sends another status, with more header lines and a small body instead of the content.
    case status(Int, [(String, String)] = [], body: String = "")
    /// Sends a 401 with this challenge to requests without that `Authorization`.
    case demand(authorization: String, challenge: String)
    /// Sends a 1xx response before the real one.
    case informational(Int, [(String, String)] = [])
    /// Sends one more header line.
    case header(String, String)
    case partial(PartialLie)
    /// From this request on the path serves another resource.
    case become(Resource)
    /// Holds the request, before the response, until the gate opens.
    case hold(Gate)
    /// Holds the response after so many body bytes until the gate opens.
    case holdBody(after: Int, Gate)
    /// Sends no byte of the content from the current offset of the closure on.
    case leash(@Sendable () -> Int)
    /// Sends no byte of the content in the current range of the closure.
    case withhold(@Sendable () -> Range<Int>)

    /// Sends a redirect.
    package static func redirect(_ location: String, status: Int = 302) -> Misbehaviour {
        .status(status, [("Location", location)])
    }

    /// Sends text verbatim.
    package static func raw(_ text: String) -> Misbehaviour { .raw(Array(text.utf8)) }
}
