/// The metrics for Prometheus.
///
/// Each metric is created once, with all possible values of its labels, so that no request, host or name can create
/// series without bound. Adding is lock-free. The text is version 0.0.4 of the exposition format.
package final class Metrics: Sendable {
    private let families = Locked<[Family]>([])

    package init() {}

    /// A number that only increases. Its name ends in `_total`.
    package func counter(_ name: String, _ help: String, label labels: (String, [String])...) -> Counter {
        Counter(series: register(name, help, "counter", labels))
    }

    /// A number that rises and falls.
    package func gauge(_ name: String, _ help: String, label labels: (String, [String])...) -> Gauge {
        Gauge(series: register(name, help, "gauge", labels))
    }

    /// A number that is read at each scrape.
    package func gauge(_ name: String, _ help: String, read: @escaping @Sendable () -> Double) {
        register(Family(name: name, help: help, kind: "gauge") { page in page.sample(name, "", read()) })
    }

    /// A number that only increases and is read at each scrape. Its name ends in `_total`.
    package func counter(_ name: String, _ help: String, read: @escaping @Sendable () -> Double) {
        register(Family(name: name, help: help, kind: "counter") { page in page.sample(name, "", read()) })
    }

    /// A distribution of durations. The name ends in `_seconds`.
    ///
    /// - Parameter buckets: Upper bounds in seconds, ascending, without the last one, which is infinite.
    package func histogram(
        _ name: String, _ help: String, buckets: [Double], label labels: (String, [String])...
    ) -> Histogram {
        precondition(zip(buckets, buckets.dropFirst()).allSatisfy { $0 < $1 }, "\(name): buckets ascend")
        let bounds = buckets.map { MetricText.number($0) } + ["+Inf"]
        let counts = MetricSeries(labels + [("le", bounds)])
        let sums = MetricSeries(labels)
        register(
            Family(name: name, help: help, kind: "histogram") { page in
                var below = 0.0
                counts.forEach { index, labels, number in
                    below = index.isMultiple(of: bounds.count) ? number.value : below + number.value
                    page.sample(name + "_bucket", labels, below)
                    guard (index + 1).isMultiple(of: bounds.count) else { return }
                    let place = index / bounds.count
                    page.sample(name + "_sum", sums.text(at: place), sums.number(at: place).value)
                    page.sample(name + "_count", sums.text(at: place), below)
                }
            })
        return Histogram(bounds: buckets, counts: counts, sums: sums)
    }

    /// All metrics as text, in order of creation.
    package func render() -> [UInt8] {
        var page = MetricText()
        for family in families.withLock({ $0 }) { family.render(into: &page) }
        return page.bytes
    }

    private func register(
        _ name: String, _ help: String, _ kind: String, _ labels: [(String, [String])]
    ) -> MetricSeries {
        let series = MetricSeries(labels)
        register(
            Family(name: name, help: help, kind: kind) { page in
                series.forEach { _, labels, number in page.sample(name, labels, number.value) }
            })
        return series
    }

    private func register(_ family: Family) {
        precondition(MetricText.isName(family.name), "\(family.name) is no name of a metric")
        families.withLock { families in
            precondition(!families.contains { $0.name == family.name }, "\(family.name) exists already")
            families.append(family)
        }
    }

    /// A number that only increases.
    package struct Counter: Sendable {
        fileprivate let series: MetricSeries

        /// Adds a non-negative `amount` to the series of these label values, given in the order of creation.
        package func add(_ amount: Int64 = 1, _ values: String...) {
            precondition(amount >= 0, "a counter only grows")
            series.number(values).add(Double(amount))
        }

        package func value(_ values: String...) -> Double { series.number(values).value }
    }

    /// A number that rises and falls.
    package struct Gauge: Sendable {
        fileprivate let series: MetricSeries

        package func add(_ amount: Double, _ values: String...) { series.number(values).add(amount) }

        package func set(_ value: Double, _ values: String...) { series.number(values).set(value) }
    }

    /// A distribution of durations.
    package struct Histogram: Sendable {
        fileprivate let bounds: [Double]
        fileprivate let counts: MetricSeries
        fileprivate let sums: MetricSeries

        /// Adds a duration in seconds.
        package func observe(_ seconds: Double, _ values: String...) {
            let place = sums.index(of: values)
            let bucket = bounds.firstIndex { seconds <= $0 } ?? bounds.count
            counts.number(at: place * (bounds.count + 1) + bucket).add(1)
            sums.number(at: place).add(seconds)
        }
    }

    private struct Family: Sendable {
        let name: String
        let help: String
        let kind: String
        let samples: @Sendable (inout MetricText) -> Void

        func render(into page: inout MetricText) {
            page.head(name, help: help, kind: kind)
            samples(&page)
        }
    }
}
