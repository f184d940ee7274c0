import Base
import Core
import HTTPServer

struct RequestMeters: Sendable {
    private let answered: Metrics.Counter
    private let duration: Metrics.Histogram
    private let routes: Set<String>

    private static let nowhere = "none"

    /// - Parameter routes: The patterns of all routes.
    init(_ metrics: Metrics, routes: Set<String>, held: HeldRequests) {
        self.routes = routes
        let labels = routes.sorted() + [Self.nowhere]
        answered = metrics.counter(
            "urlsessiond_http_requests_total", "Requests answered, by route and class of status.",
            label: ("route", labels), ("status", ["1xx", "2xx", "3xx", "4xx", "5xx", "none"]))
        duration = metrics.histogram(
            "urlsessiond_http_request_duration_seconds",
            "Time from the request line to the last byte of the response, without held requests.",
            buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60], label: ("route", labels))
        metrics.gauge("urlsessiond_http_requests_held", "Held requests: long polls and streams.") {
            Double(held.count)
        }
    }

    func count(_ observation: Observation) {
        let kind = observation.status / 100
        let route = observation.route.flatMap { routes.contains($0) ? $0 : nil } ?? Self.nowhere
        answered.add(1, route, (1...5).contains(kind) ? "\(kind)xx" : "none")
        if !Self.waits(observation) { duration.observe(observation.duration.seconds, route) }
    }

    /// Whether the request is a long poll or an event stream, whose duration depends on events.
    private static func waits(_ observation: Observation) -> Bool {
        if observation.isStreamed { return observation.route?.hasSuffix("/events") == true }
        guard let query = observation.target.firstIndex(of: "?") else { return false }
        return observation.target[query...].dropFirst().split(separator: "&").contains { $0.hasPrefix("wait=") }
    }
}
