import Base
import Core
import TestSupport
import Testing
import Wire

@testable import Launches

@Suite struct SigningTests {
    /// Vectors of the specification's reference libraries (1) and the project's own, computed with OpenSSL.
    struct Vector: Sendable {
        var key: String
        var id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
        var timestamp: Int64 = 1_614_265_330
        var body: [UInt8]
        var signature: String
    }

    static let key = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    static let body = Array(#"{"test": 2432232314}"#.utf8)
    static let vectors = [
        Vector(key: key, body: body, signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        Vector(
            key: "plJ3nmyCDGBKInavdOK15jsl", id: "msg_loFOjxBNrRLzqYUf", timestamp: 1_731_705_121,
            body: Array(#"{"event_type":"ping","data":{"success":true}}"#.utf8),
            signature: "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="),
        Vector(
            key: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", body: body,
            signature: "v1,O4Gjv1HqPqsMrjmczoggs/sWA8gZD0VyHG+fLh4+ktI="),
        Vector(key: key, body: [], signature: "v1,v48jdbgvh29KJz2Qc+ghw8G6vG3nAKnujWBg8oM/62A="),
        Vector(
            key: key, body: [0xFF, 0x00, 0x0A], signature: "v1,Ce8OR5b7Hub64N7RqNE7qVtEFMA+EWr25LQ9szwntNQ="),
    ]

    @Test(arguments: vectors) func `Signatures are those of Standard Webhooks`(_ vector: Vector) throws {
        let key = try #require([UInt8](base64: vector.key))
        #expect(
            Signature.header(secrets: [key], id: vector.id, timestamp: vector.timestamp, body: vector.body)
                == vector.signature)
    }

    @Test func `Several secrets sign one message`() throws {
        let keys = [Self.vectors[0], Self.vectors[2]].compactMap { [UInt8](base64: $0.key) }
        #expect(
            Signature.header(
                secrets: keys, id: Self.vectors[0].id, timestamp: Self.vectors[0].timestamp, body: Self.body)
                == Self.vectors[0].signature + " " + Self.vectors[2].signature)
    }

    @Test func `Bodies are ASCII and keep their meaning`() throws {
        let text = "ä 漢 🎈 \"quoted\" \u{7F}"
        let ascii = Payload.asciiOnly(JSONText(Wire.JSON.string(text)).bytes)
        #expect(ascii.allSatisfy { $0 < 0x80 })
        #expect(try Wire.JSON.parse(ascii) == .string(text))
    }

    @Test func `The body of a 2xx is parsed, and an invalid one is ignored`() {
        func inline(_ text: String) -> LaunchAnswer? { ReceiverAnswer.answer(Array(text.utf8)) }
        #expect(inline(#"{"completed": true}"#) == .completed(through: nil))
        #expect(inline(#"{"completed": true, "through": 7}"#) == .completed(through: 7))
        #expect(inline(#"{"completed": true, "through": -7}"#) == nil)
        #expect(inline(#"{"completed": "true"}"#) == nil)
        #expect(inline(#"{"completed": false}"#) == nil)
        #expect(inline(#"{"result": "noData"}"#) == .fetched(.noData))
        #expect(inline(#"{"result": "other"}"#) == nil)
        #expect(inline("ok") == nil)
        #expect(inline("[]") == nil)
        #expect(inline("") == nil)
    }

    @Test func `Excerpts hide keys and control characters`() {
        let key = "usd_abcdefgh_0123456789012345678901234567890123456789012"
        #expect(ReceiverAnswer.excerpt(Array("a \(key) b".utf8)) == "a usd_<redacted> b")
        #expect(ReceiverAnswer.excerpt(Array("Bearer abcdefghijklmnopqrstuvw".utf8)) == "Bearer <redacted>")
        #expect(ReceiverAnswer.excerpt(Array("Bearer bonds".utf8)) == "Bearer bonds")
        #expect(ReceiverAnswer.excerpt([0x61, 0x00, 0x62]) == "a\u{FFFD}b")
        #expect(ReceiverAnswer.excerpt([]) == nil)
    }
}
