import Base
import Core
import HTTPServer

/// What is counted about requests, with labels from closed sets.
struct RequestMeters: Sendable {
    private let answered: Metrics.Counter
    private let duration: Metrics.Histogram

    init(_ metrics: Metrics) {
        answered = metrics.counter(
            "urlsessiond_http_requests_total", "Requests answered, by class of status.",
            label: ("status", ["1xx", "2xx", "3xx", "4xx", "5xx", "none"]))
        duration = metrics.histogram(
            "urlsessiond_http_request_duration_seconds", "From the request line to the last byte of the answer.",
            buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60])
    }

    func count(_ observation: Observation) {
        let kind = observation.status / 100
        answered.add(1, (1...5).contains(kind) ? "\(kind)xx" : "none")
        duration.observe(observation.duration.seconds)
    }
}
