import Wire

/// The times in which a task, or several tasks at once, transferred. The wait for a turn or for the next attempt is no
/// part of them.
struct Pace: Sendable, Equatable {
    /// Milliseconds since 1970, in order and apart from each other.
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

    /// The times of several tasks: what they did at once counts once.
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

    /// `12.0 MB in 4.0 s, 3.0 MB/s`; without times that can be measured, the bytes alone.
    func words(for bytes: Int64) -> String {
        let text = Words.bytes(bytes)
        guard seconds >= 0.1 else { return text }
        return "\(text) in \(Words.duration(seconds)), \(Words.bytes(Int64(Double(bytes) / seconds)))/s"
    }
}
