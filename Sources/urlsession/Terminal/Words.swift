import Glibc
import Options
import Wire

enum Words {
    // MARK: Amounts

    private static let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]

    /// `1.2 MB`.
    static func bytes(_ count: Int64) -> String {
        let (text, unit) = scaled(count, as: scale(count))
        return "\(text) \(unit)"
    }

    /// `0.4 of 1.2 MB`.
    static func bytes(_ count: Int64, of whole: Int64) -> String {
        let (part, _) = scaled(count, as: scale(whole))
        return "\(part) of \(bytes(whole))"
    }

    private static func scale(_ count: Int64) -> Int {
        var (rest, scale) = (Double(count), 0)
        while rest >= 999.5, scale < units.count - 1 { (rest, scale) = (rest / 1000, scale + 1) }
        return scale
    }

    private static func scaled(_ count: Int64, as scale: Int) -> (String, String) {
        guard scale > 0 else { return (String(count), units[0]) }
        var divisor = 1.0
        for _ in 0..<scale { divisor *= 1000 }
        let tenths = (Double(count) / divisor * 10).rounded()
        let isShort = tenths >= 1000
        let text =
            isShort ? String(Int((Double(count) / divisor).rounded())) : "\(Int(tenths) / 10).\(Int(tenths) % 10)"
        return (text, units[scale])
    }

    /// `0:04`, `1:02:03`.
    static func clock(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds < 360_000 else { return "days" }
        let whole = Int(seconds.rounded(.up))
        let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60)
        return hours > 0 ? "\(hours):\(two(minutes)):\(two(rest))" : "\(minutes):\(two(rest))"
    }

    /// `0.4 s`, `12 s`, `3 min`, `5 h`, `2 days`.
    static func duration(_ seconds: Double) -> String {
        switch seconds {
        case ..<9.95: "\(Double(Int((max(0, seconds) * 10).rounded())) / 10) s"
        case ..<99.5: "\(Int(seconds.rounded())) s"
        case ..<5970: "\(Int((seconds / 60).rounded())) min"
        case ..<171_000: "\(Int((seconds / 3600).rounded())) h"
        default: "\(Int((seconds / 86_400).rounded())) days"
        }
    }

    // MARK: Times

    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// A time in local form, with the day only if it is not today: `15:04:05`, `2026-11-21 15:04:05`.
    static func time(_ text: String?, now: Int64 = now) -> String {
        guard let text else { return "-" }
        guard let milliseconds = TimeText.parse(text) else { return text }
        let (then, today) = (local(milliseconds), local(now))
        let clock = "\(two(then.tm_hour)):\(two(then.tm_min)):\(two(then.tm_sec))"
        guard then.tm_yday != today.tm_yday || then.tm_year != today.tm_year else { return clock }
        return "\(then.tm_year + 1900)-\(two(then.tm_mon + 1))-\(two(then.tm_mday)) \(clock)"
    }

    /// `in 12 s`, `now`, `3 min ago`.
    static func distance(_ text: String, now: Int64 = now) -> String? {
        guard let milliseconds = TimeText.parse(text) else { return nil }
        let seconds = (milliseconds - now) / 1000
        switch seconds {
        case 0: return "now"
        case 1...9: return "in \(seconds) s"
        case -9...(-1): return "\(-seconds) s ago"
        default: return seconds > 0 ? "in \(duration(Double(seconds)))" : "\(duration(Double(-seconds))) ago"
        }
    }

    /// A time in the service's form, from such a text or from an age such as `2h`.
    static func moment(_ text: String, now: Int64 = now) -> String {
        guard let seconds = Amount.seconds(text) else { return text }
        var moment: [UInt8] = []
        TimeText.append(now - Int64(seconds * 1000), to: &moment)
        return String(decoding: moment, as: UTF8.self)
    }

    private static func local(_ milliseconds: Int64) -> tm {
        var (seconds, parts) = (time_t(milliseconds / 1000), tm())
        localtime_r(&seconds, &parts)
        return parts
    }

    private static func two(_ number: some BinaryInteger) -> String { number < 10 ? "0\(number)" : "\(number)" }

    // MARK: Tasks

    /// One word: the outcome or the phase.
    static func state(_ task: SessionTask) -> String {
        (task.outcome?.rawValue) ?? (task.state == .running ? task.phase?.rawValue : nil) ?? task.state.rawValue
    }

    static func failure(_ task: SessionTask) -> String {
        failure(task.outcome, task.error, task.response)
    }

    static func failure(_ outcome: TaskOutcome?, _ error: TaskError?, _ response: TaskResponse?) -> String {
        if let error { return self.error(error) }
        guard let response else { return outcome == .cancelled ? "cancelled" : "no answer" }
        return "the server answered \(status(response.statusCode))"
    }

    static func error(_ error: TaskError) -> String {
        var text = error.localizedDescription.isEmpty ? error.name : error.localizedDescription
        text = sentence(text)
        let message = error.underlying?.message ?? ""
        return message.isEmpty || text.contains(message) ? text : "\(text) (\(message))"
    }

    /// A sentence as part of another.
    static func sentence(_ text: String) -> String { text.hasSuffix(".") ? String(text.dropLast()) : text }

    static func status(_ code: Int64) -> String {
        reasons[code].map { "\(code) \($0)" } ?? String(code)
    }

    private static let reasons: [Int64: String] = [
        200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently",
        302: "Found", 304: "Not Modified", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 413: "Content Too Large",
        416: "Range Not Satisfiable", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
        503: "Service Unavailable", 504: "Gateway Timeout",
    ]

    /// The reason why a task waits, in a few words; `nil` if it does not.
    static func waiting(_ task: SessionTask, now: Int64 = now) -> String? {
        switch task.state {
        case .suspended: return "suspended"
        case .canceling: return "being cancelled"
        case .completed: return nil
        default: break
        }
        if task.phase == .retryWait {
            let last = task.attempts.last
            let cause = last?.error.map { sentence($0.localizedDescription) } ?? last?.statusCode.map { status($0) }
            let next = task.attempts.nextAt.flatMap { distance($0, now: now) } ?? "soon"
            return "retries \(next)" + (cause.map { ": \($0)" } ?? "")
        }
        if let reason = task.waitingFor.first {
            let until = reason.until.flatMap { distance($0, now: now) }.map { " (\($0))" } ?? ""
            return sentence(reason.detail) + until
        }
        switch task.phase {
        case .receiving, .sending: return nil
        case .connecting: return "connecting"
        case .finalizing: return "being stored"
        default: return "waiting for its turn"
        }
    }
}
