import Foundation
import Testing
import Wire

@testable import URLSessionClient

/// Vectors of the Standard Webhooks reference libraries, and digests of FIPS 180-4.
struct WebhookTests {
    static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    static let body = Array(#"{"test": 2432232314}"#.utf8)
    static let headers = [
        "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ]

    /// The result; a payload that is no webhook of the service has passed the signature, too.
    static func outcome(
        _ headers: [String: String] = headers, _ body: [UInt8] = body, secrets: [String] = [secret],
        now: Int64 = 1_614_265_330
    ) -> WebhookError? {
        do throws(WebhookError) {
            _ = try Webhook(secrets: secrets).verify(headers: headers, body: body, now: now)
            return nil
        } catch { return error }
    }

    @Test func `Digests have the standard's values`() {
        let expected = [
            "": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "abc": "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq": "JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE=",
        ]
        for (text, digest) in expected { #expect(Base64.encode(SHA256.digest(Array(text.utf8))) == digest) }
    }

    @Test func `Keys longer than a block are digested first`() {
        let code = SHA256.authenticationCode(
            of: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            key: [UInt8](repeating: 0xAA, count: 131))
        #expect(Base64.encode(code) == "YOQxWR7gtn8Niiaqy/W3f44LxiE3KMUUBUYEDw7jf1Q=")
    }

    @Test func `A signed webhook of the service is read`() throws {
        let body = Array(#"{"type":"webhook.ping","timestamp":"2026-01-01T00:00:00.000Z","data":{"app":"a"}}"#.utf8)
        let key = [UInt8](repeating: 7, count: 32)
        let signature = Base64.encode(SHA256.authenticationCode(of: Array("lnch_1.100.".utf8) + body, key: key))
        let headers = [
            "webhook-id": "lnch_1", "webhook-timestamp": "100", "webhook-signature": "v1,AAAA v2,x v1,\(signature)",
        ]
        let webhook = try Webhook(secrets: ["whsec_" + Base64.encode(key)])
        #expect(try webhook.verify(headers: headers, body: body, now: 120).type == "webhook.ping")
    }

    @Test func `The reference libraries' vector passes the signature, with the secret's prefix or without`() {
        // Its payload has no type, which is checked last.
        #expect(Self.outcome() == .unreadable)
        #expect(Self.outcome(secrets: [String(Self.secret.dropFirst(6))]) == .unreadable)
    }

    @Test func `During a rotation either secret is accepted`() {
        let other = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
        #expect(Self.outcome(secrets: [other, Self.secret]) == .unreadable)
        #expect(Self.outcome(secrets: [other]) == .wrongSignature)
    }

    @Test func `One changed byte of body, identifier or time is refused`() {
        #expect(Self.outcome(Self.headers, Self.body + [0x20]) == .wrongSignature)
        #expect(Self.outcome(Self.headers.merging(["Webhook-Id": "msg_other"]) { $1 }) == .wrongSignature)
        #expect(Self.outcome(Self.headers.merging(["webhook-timestamp": "1614265331"]) { $1 }) == .wrongSignature)
    }

    @Test func `Five minutes of clock difference are accepted`() {
        let expected: KeyValuePairs<Int64, WebhookError> = [
            -301: .wrongTime, -300: .unreadable, 300: .unreadable, 301: .wrongTime,
        ]
        for (offset, error) in expected { #expect(Self.outcome(now: 1_614_265_330 + offset) == error) }
    }

    @Test(arguments: ["Webhook-Id", "webhook-timestamp", "webhook-signature"])
    func `No header field may be missing`(_ name: String) {
        var headers = Self.headers
        headers[name] = nil
        #expect(Self.outcome(headers) == .incompleteHeaders)
    }

    @Test(arguments: ["", "x", "-", "1e9", "9223372036854775808"])
    func `An invalid time is refused`(_ text: String) {
        #expect(Self.outcome(Self.headers.merging(["webhook-timestamp": text]) { $1 }) == .incompleteHeaders)
    }

    @Test func `The earliest of times is refused without a trap`() {
        let headers = Self.headers.merging(["webhook-timestamp": "-9223372036854775808"]) { $1 }
        #expect(Self.outcome(headers) == .wrongTime)
    }

    @Test(arguments: ["", "whsec_", "whsec_not base64", "whsec_AAA"])
    func `An invalid secret makes no verifier`(_ secret: String) {
        #expect(Self.outcome(secrets: [secret]) == .unusableSecret)
        #expect(WebhookError.unusableSecret.localizedDescription.contains("whsec_"))
    }
}
