package import Base
import Core

/// The metrics of transfers.
package struct TransferMeters: Sendable {
    let completed: Metrics.Counter
    let retries: Metrics.Counter
    let received: Metrics.Counter
    let sent: Metrics.Counter
    let contentsDropped: Metrics.Counter

    package init(_ metrics: Metrics) {
        completed = metrics.counter(
            "urlsessiond_tasks_completed_total", "Tasks that ended, by outcome.",
            label: ("outcome", Outcome.allCases.map(\.rawValue)))
        retries = metrics.counter("urlsessiond_task_retries_total", "Attempts that another attempt followed.")
        received = metrics.counter("urlsessiond_received_bytes_total", "Body bytes received from origins.")
        sent = metrics.counter("urlsessiond_sent_bytes_total", "Body bytes sent to origins.")
        contentsDropped = metrics.counter(
            "urlsessiond_contents_dropped_total", "Contents that expired unacknowledged.")
    }
}
