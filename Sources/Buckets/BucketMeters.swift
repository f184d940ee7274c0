package import Base

/// The metrics of buckets, by the operator's names.
package struct BucketMeters: Sendable {
    private let sent: Metrics.Counter
    private let received: Metrics.Counter
    private let failures: Metrics.Counter

    package init(_ metrics: Metrics, names: [String]) {
        sent = metrics.counter(
            "urlsessiond_bucket_sent_bytes_total", "Body bytes sent to buckets.", label: ("bucket", names))
        received = metrics.counter(
            "urlsessiond_bucket_received_bytes_total", "Body bytes received from buckets.",
            label: ("bucket", names))
        failures = metrics.counter(
            "urlsessiond_bucket_failures_total", "Requests to buckets without a response, or with a refusal.",
            label: ("bucket", names))
    }

    func note(sent bytes: Int64, of bucket: String) { sent.add(bytes, bucket) }

    func note(received bytes: Int64, of bucket: String) { received.add(bytes, bucket) }

    func noteFailure(of bucket: String) { failures.add(1, bucket) }
}
