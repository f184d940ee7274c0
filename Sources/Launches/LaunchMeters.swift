import Base
import Core
import Store

/// The metrics of launches.
struct LaunchMeters: Sendable {
    let attempts: Metrics.Counter
    let inFlight: Metrics.Gauge
    let duration: Metrics.Histogram

    init(_ metrics: Metrics) {
        attempts = metrics.counter(
            "urlsessiond_launch_attempts_total", "Webhooks sent, by kind and result.",
            label: ("kind", LaunchKind.allCases.map(\.rawValue)),
            ("result", ["success", "failure", "gone", "interrupted"]))
        inFlight = metrics.gauge("urlsessiond_launches_in_flight", "Webhooks in flight.")
        duration = metrics.histogram(
            "urlsessiond_launch_attempt_duration_seconds", "Response times of receivers.",
            buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30])
    }

    func count(_ kind: LaunchKind, _ attempt: LaunchAttempt, _ verdict: LaunchReport.Verdict) {
        attempts.add(1, kind.rawValue, verdict.name)
        duration.observe(attempt.duration.seconds)
    }
}

extension LaunchReport.Verdict {
    /// The name in metrics and logs.
    var name: String {
        switch self {
        case .succeeded: "success"
        case .gone: "gone"
        case .failed: "failure"
        case .interrupted: "interrupted"
        }
    }
}
