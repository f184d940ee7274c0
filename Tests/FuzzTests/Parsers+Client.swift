import Base
import Foundation

@testable import URLSessionClient

/// Events are the same however they arrive, and the service's own are read back equal.
func checkServerSentEvents(_ bytes: [UInt8]) throws {
    func read(_ bytes: [UInt8], _ size: Int) -> [[UInt8]] {
        var parser = ServerSentEvents()
        return stride(from: 0, to: bytes.count, by: size).flatMap {
            parser.add(Array(bytes[$0..<min($0 + size, bytes.count)]))
        }
    }
    let whole = read(bytes, 4096)
    for size in [1 + bytes.count / 4096, 7] { try hold(read(bytes, size) == whole, "in pieces of \(size)") }
    let data = bytes.filter { $0 != 0x0A && $0 != 0x0D }
    let frame = Array("id: 1\nevent: e\ndata: ".utf8) + data + Array("\n\n:\n\n".utf8)
    try hold(read(frame, 4096) == [data], "an event changes")
}

/// Only what was signed is believed: the lines are a secret, an identifier, a time, signatures and the body.
func checkWebhook(_ bytes: [UInt8]) throws {
    let parts = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 4, omittingEmptySubsequences: false)
    guard parts.count == 5, let webhook = try? Webhook(secrets: [text(Array(parts[0]))]) else { return }
    let (id, time, body) = (text(Array(parts[1])), text(Array(parts[2])), Array(parts[4]))
    let secret = text(Array(parts[0]))
    let key = [UInt8](base64: secret.hasPrefix("whsec_") ? String(secret.dropFirst(6)) : secret) ?? []
    let signature = "v1," + HMAC.sha256(key: key, message: Array("\(id).\(time).".utf8) + body).base64
    func error(_ signatures: String) -> WebhookError? {
        let headers = ["Webhook-Id": id, "webhook-timestamp": time, "WEBHOOK-SIGNATURE": signatures]
        do throws(WebhookError) { _ = try webhook.verify(headers: headers, body: body, now: 1_700_000_000) } catch {
            return error
        }
        return nil
    }
    let given = text(Array(parts[3]))
    let isSigned = given.utf8.split(separator: 0x20).contains { $0.elementsEqual(signature.utf8) }
    try hold(isSigned || error(given) != nil && error(given) != .unreadable, "an unsigned webhook is believed")
    let signed = error("\(given) \(signature)")
    try hold(signed != .wrongSignature && signed != .unusableSecret, "a signed webhook is not believed")
}

/// A launch is the same however it arrives.
func checkLaunch(_ bytes: [UInt8]) throws {
    func read(_ size: Int) -> (headers: [String: String], body: [UInt8])? {
        var request = ArrivingRequest()
        for start in stride(from: 0, to: bytes.count, by: size) {
            let piece = Array(bytes[start..<min(start + size, bytes.count)])
            if let whole = request.add(piece) { return (whole.headers, whole.body) }
        }
        return nil
    }
    let whole = read(bytes.count + 1)
    for size in [1 + bytes.count / 4096, 7] {
        let other = read(size)
        try hold(other?.headers == whole?.headers && other?.body == whole?.body, "in pieces of \(size)")
    }
    guard let whole else { return }
    try hold(
        "\(whole.body.count)" == whole.headers["content-length"] ?? "0" || whole.body.isEmpty,
        "a body of another length")
}

/// The resume data of a failed download are read back equal.
func checkResumeData(_ bytes: [UInt8]) throws {
    guard let failed = FailedDownload(Data(bytes)) else { return }
    try hold(FailedDownload(failed.data) == failed, "the resume data change")
}
