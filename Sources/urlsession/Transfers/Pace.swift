import Wire

/// The periods in which one or more tasks transferred, without the waits for a slot or for the next attempt.
struct Pace: Sendable, Equatable {
    /// Milliseconds since 1970, in order and disjoint.
    private let spans: [ClosedRange<Int64>]

    init(_ metrics: TaskMetrics) {
        self.init(
            metrics.transactionMetrics.compactMap { transaction in
                let ends = [transaction.responseEndDate, transaction.responseStartDate, transaction.requestEndDate]
                guard let start = TimeText.parse(transaction.fetchStartDate),
                    let end = ends.lazy.compactMap({ $0.flatMap(TimeText.parse) }).first, end >= start
                else { return nil }
                return start...end
            })
    }

    /// The periods of several tasks; concurrent periods count once.
    init(_ paces: [Pace]) { self.init(paces.flatMap(\.spans)) }

    private init(_ spans: [ClosedRange<Int64>]) {
        var merged: [ClosedRange<Int64>] = []
        for span in spans.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = merged.last, span.lowerBound <= last.upperBound {
                merged[merged.count - 1] = last.lowerBound...max(last.upperBound, span.upperBound)
            } else {
                merged.append(span)
            }
        }
        self.spans = merged
    }

    var seconds: Double { Double(spans.reduce(0) { $0 + $1.upperBound - $1.lowerBound }) / 1000 }

    /// `12.0 MB in 4.0 s, 3.0 MB/s`; without measurable periods, the bytes alone.
    func words(for bytes: Int64) -> String {
        let text = Words.bytes(bytes)
        guard seconds >= 0.1 else { return text }
        return "\(text) in \(Words.duration(seconds)), \(Words.bytes(Int64(Double(bytes) / seconds)))/s"
    }
}
