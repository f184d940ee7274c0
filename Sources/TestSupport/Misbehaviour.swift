/// One thing an origin does wrong, or merely unusual, with one request.
package enum Misbehaviour: Sendable {
    /// How a connection ends. With `silence` it does not: nothing more is sent, until the peer leaves.
    package enum Ending: Sendable { case finish, reset, silence }

    /// How the `Content-Range` of a 206 lies.
    package enum PartialLie: Sendable {
        /// The range said and sent starts this many bytes later (or earlier, when negative).
        case shifted(Int)
        /// The total is another than the content has.
        case total(String)
        /// No `Content-Range` at all.
        case missing
        /// The line as given.
        case verbatim(String)
    }

    /// Waits before the first byte of the answer.
    case delayHead(Duration)
    /// Sends the body in pieces of `size` bytes with a pause after each.
    case trickle(size: Int, pause: Duration)
    /// Closes after so many body bytes.
    case cut(after: Int, Ending = .finish)
    /// Sends so many body bytes, then nothing, with the connection open.
    case stall(after: Int)
    /// Reads the request and closes without an answer.
    case noAnswer(Ending = .finish)
    /// Reads the head of the request, not its body, and answers at once; `raw` closes rudely after it, all else politely.
    case earlyAnswer
    /// Reads so many bytes of the request's body, then closes.
    case cutUpload(after: Int, Ending = .finish)
    /// Takes the request's body one byte at a time, with a pause before each.
    case sip(pause: Duration)
    /// These `Content-Length` values, one line each, in place of the right one.
    case contentLength([String])
    /// `Transfer-Encoding: chunked` with chunks of so many bytes.
    case chunked(size: Int = 1024)
    /// Neither length nor chunks: the close ends the body.
    case closeDelimited
    /// A body that never ends, without a length.
    case endless
    /// Exactly these bytes, then the end of the connection.
    case raw([UInt8], Ending = .finish)
    /// Another status, with more header lines and a small body instead of the content.
    case status(Int, [(String, String)] = [], body: String = "")
    /// A 401 with this challenge to requests without that `Authorization`.
    case demand(authorization: String, challenge: String)
    /// A 1xx answer before the real one.
    case informational(Int, [(String, String)] = [])
    /// One more header line.
    case header(String, String)
    case partial(PartialLie)
    /// From this request on the path serves another resource.
    case become(Resource)
    /// Holds the request, before the answer, until the gate opens.
    case hold(Gate)
    /// Holds the answer after so many body bytes until the gate opens.
    case holdBody(after: Int, Gate)
    /// Sends no byte of the content at or behind the offset that this says now.
    case leash(@Sendable () -> Int)

    /// A redirect.
    package static func redirect(_ location: String, status: Int = 302) -> Misbehaviour {
        .status(status, [("Location", location)])
    }

    /// Text, sent verbatim.
    package static func raw(_ text: String) -> Misbehaviour { .raw(Array(text.utf8)) }
}
