import Core
import Glibc

/// The response of an origin to one request: its head, and a range of its content.
struct Answer {
    private(set) var status: Int
    private(set) var fields = HTTPFields()
    /// The bytes of the content to send.
    private(set) var range: Range<Int>
    let isEndless: Bool
    let chunkSize: Int?
    let keepsConnection: Bool
    let sendsBody: Bool
    private var body: Resource.Body
    private let plan: Plan

    init(method: String, request: HTTPFields, resource: Resource?, plan: Plan) {
        self.plan = plan
        isEndless = plan.endless
        chunkSize = plan.chunkSize
        sendsBody = method != "HEAD"
        keepsConnection =
            plan.contentLength == nil && !plan.endless && !plan.closeDelimited
            && request["Connection"]?.asciiLowercased != "close"
        let absent = Resource.text("nothing here\n", status: 404)
        let resource = resource ?? (plan.status == nil ? absent : .text(""))
        body = resource.body
        status = resource.status
        range = 0..<resource.body.length
        fields.append("Date", httpDate(secondsFromNow: 0))
        if let (authorization, challenge) = plan.demand, request["Authorization"] != authorization {
            status = 401
            body = .bytes(Array("no".utf8))
            range = 0..<2
            fields.append("WWW-Authenticate", challenge)
        } else if let (code, more, bytes) = plan.status {
            status = code
            body = .bytes(bytes)
            range = 0..<bytes.count
            fields.fields += more.fields
        } else {
            describe(resource)
            choose(request, resource, method)
        }
        fields.fields += plan.fields.fields
    }

    /// Replaces the content with a small body.
    mutating func replaceContent(status: Int, body: [UInt8]) {
        guard plan.status == nil else { return }
        self.status = status
        self.body = .bytes(body)
        range = 0..<body.count
    }

    var head: String { "HTTP/1.1 \(status) \(status < 400 ? "OK" : "Error")\r\n\(fields.lines)\(framing)\r\n" }

    func bytes(_ range: Range<Int>) -> [UInt8] {
        isEndless ? Content.bytes(seed: 1, range: range) : body.bytes(range)
    }

    private var framing: String {
        if let values = plan.contentLength { return values.map { "Content-Length: \($0)\r\n" }.joined() }
        if chunkSize != nil { return "Transfer-Encoding: chunked\r\n" }
        if plan.closeDelimited || isEndless { return "Connection: close\r\n" }
        if status == 204 || status == 304 || status < 200 { return "" }
        return "Content-Length: \(range.count)\r\n"
    }

    private mutating func describe(_ resource: Resource) {
        if let etag = resource.etag { fields.append("ETag", etag) }
        if let lastModified = resource.lastModified { fields.append("Last-Modified", lastModified) }
        if let acceptRanges = resource.acceptRanges { fields.append("Accept-Ranges", acceptRanges) }
        if let contentType = resource.contentType { fields.append("Content-Type", contentType) }
        fields.fields += resource.fields.fields
    }

    /// Chooses between 200, 206, 304 and 416 (RFC 9110 sections 13 and 14).
    private mutating func choose(_ request: HTTPFields, _ resource: Resource, _ method: String) {
        guard method == "GET", resource.status == 200 else { return }
        if let etag = resource.etag, request["If-None-Match"] == etag {
            status = 304
            range = 0..<0
            return
        }
        guard let wanted = request["Range"], resource.servesRanges else { return }
        if let condition = request["If-Range"], resource.honoursIfRange {
            guard condition == resource.etag || condition == resource.lastModified, !condition.hasPrefix("W/") else {
                return
            }
        }
        let total = resource.body.length
        guard let found = Self.range(wanted, total: total) else {
            status = 416
            body = .bytes(Array("no such range\n".utf8))
            range = 0..<body.length
            fields.append("Content-Range", "bytes */\(total)")
            return
        }
        status = 206
        range = found
        addContentRange(total: total)
    }

    private mutating func addContentRange(total: Int) {
        var total = String(total)
        switch plan.partial {
        case .shifted(let offset): range = max(0, range.lowerBound + offset)..<range.upperBound
        case .total(let other): total = other
        case .missing: return
        case .verbatim(let line):
            fields.append("Content-Range", line)
            return
        case nil: break
        }
        fields.append("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)")
    }

    /// The range that a `Range` field requests; `nil` if it is empty.
    static func range(_ field: String, total: Int) -> Range<Int>? {
        guard field.hasPrefix("bytes=") else { return 0..<total }
        let parts = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return 0..<total }
        guard let first = Int(parts[0]) else {
            guard let suffix = Int(parts[1]), suffix > 0, total > 0 else { return nil }
            return max(0, total - suffix)..<total
        }
        let last = min(Int(parts[1]) ?? total - 1, total - 1)
        return first <= last ? first..<last + 1 : nil
    }
}

/// A time as IMF-fixdate (RFC 9110 section 5.6.7).
package func httpDate(secondsFromNow offset: Int) -> String {
    var seconds = time(nil) + offset
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let date = "\(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900)"
    let time = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
    return "\(days[Int(parts.tm_wday)]), \(date) \(time) GMT"
}
