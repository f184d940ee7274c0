import Testing

@testable import Base

struct LogTests {
    /// The output of one call, at 2026-11-02T03:04:05.006Z.
    private func line(_ format: Log.Format, level: Log.Level = .info, _ write: (Log) -> Void) -> String {
        let lines = Locked<[UInt8]>([])
        let clock = Clock(wall: { 1_793_588_645_006 }, monotonic: { 0 })
        write(Log(level: level, format: format, clock: clock) { bytes in lines.withLock { $0 += bytes } })
        return String(decoding: lines.withLock { $0 }, as: UTF8.self)
    }

    @Test func `A line is one JSON object, with texts quoted`() {
        let line = line(.json) {
            $0.with("app", "a").info("it happened", ("name", "é\"\\\n\r\t\u{1}\u{1F}"), ("digits", "7"))
        }
        #expect(
            line == #"{"time":"2026-11-02T03:04:05.006Z","level":"info","message":"it happened","app":"a","#
                + #""name":"é\"\\\n\r\t\u0001\u001f","digits":"7"}"# + "\n")
    }

    @Test func `Numbers and Booleans are unquoted in JSON, except NaN`() {
        let facts = line(.json) {
            $0.with("task", Int64(8)).with(("share", 0.25)).info(
                "it happened", ("count", 7), ("port", UInt16(80)), ("none", Double.nan), ("isLast", true))
        }
        let expected = #""task":8,"share":0.25,"count":7,"port":80,"none":"nan","isLast":true}"# + "\n"
        #expect(facts.hasSuffix(expected), "\(facts)")
        #expect(line(.text) { $0.info("it happened", ("count", 7)) }.hasSuffix(" it happened count=7\n"))
    }

    @Test func `A text line quotes only ambiguous values`() {
        let line = line(.text) { $0.warning("it happened", ("plain", "a/b=c"), ("none", ""), ("spaced", "a b\n")) }
        #expect(line == #"2026-11-02T03:04:05.006Z warning it happened plain=a/b=c none="" spaced="a b\n""# + "\n")
    }

    @Test func `A message below the level is neither written nor evaluated`() {
        #expect(line(.json, level: .warning) { $0.info("it happened") }.isEmpty)
        let log = Log(level: .warning, sink: { _ in })
        #expect(!log.shows(.info) && log.shows(.error))
    }

    @Test func `A change of the level applies to all logs that were derived from one`() {
        let log = Log(level: .warning, sink: { _ in })
        let child = log.with("app", "a")
        log.show(from: .debug)
        #expect(log.shows(.debug) && child.shows(.debug))
        child.show(from: .error)
        #expect(!log.shows(.warning) && log.shows(.error))
    }
}
