import Base
import Core

/// What is counted about launches.
struct LaunchMeters: Sendable {
    let attempts: Metrics.Counter
    let inFlight: Metrics.Gauge
    let duration: Metrics.Histogram

    init(_ metrics: Metrics) {
        attempts = metrics.counter(
            "urlsessiond_launch_attempts_total", "Webhooks sent, by kind and result.",
            label: ("kind", LaunchKind.allCases.map(\.name)),
            ("result", ["success", "failure", "gone", "interrupted"]))
        inFlight = metrics.gauge("urlsessiond_launches_in_flight", "Webhooks under way.")
        duration = metrics.histogram(
            "urlsessiond_launch_attempt_duration_seconds", "How long receivers took to answer.",
            buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30])
    }

    func count(_ kind: LaunchKind, _ outcome: WebhookClient.Outcome) {
        attempts.add(1, kind.name, outcome.attempt.result)
        duration.observe(outcome.duration.seconds)
    }
}

extension Attempt {
    /// For metrics and logs.
    var result: String {
        switch outcome {
        case .success: "success"
        case .gone: "gone"
        case .failure: "failure"
        case .interrupted: "interrupted"
        }
    }
}
