import Testing

@testable import Base

@Suite struct MetricsTests {
    private func text(_ metrics: Metrics) -> String { String(decoding: metrics.render(), as: UTF8.self) }

    @Test func `A counter shows every label value from the start`() {
        let metrics = Metrics()
        let tasks = metrics.counter("tasks_completed_total", "Tasks.", label: ("outcome", ["succeeded", "failed"]))
        tasks.add(2, "failed")
        tasks.add(1, "failed")
        #expect(
            text(metrics) == """
                # HELP tasks_completed_total Tasks.
                # TYPE tasks_completed_total counter
                tasks_completed_total{outcome="succeeded"} 0
                tasks_completed_total{outcome="failed"} 3

                """)
        #expect(tasks.value("failed") == 3)
    }

    @Test func `Several labels make every combination`() {
        let metrics = Metrics()
        let requests = metrics.counter(
            "requests_total", "R.", label: ("method", ["GET", "POST"]), ("class", ["2xx", "4xx"]))
        requests.add(5, "POST", "2xx")
        #expect(text(metrics).contains("requests_total{method=\"POST\",class=\"2xx\"} 5\n"))
        #expect(text(metrics).contains("requests_total{method=\"GET\",class=\"4xx\"} 0\n"))
    }

    @Test func `A gauge rises, falls, and can be computed on demand`() {
        let metrics = Metrics()
        let running = metrics.gauge("running", "R.")
        metrics.gauge("free_bytes", "F.") { 2.5 }
        running.add(10)
        running.add(-3)
        #expect(text(metrics).contains("# TYPE running gauge\nrunning 7\n"))
        #expect(text(metrics).hasSuffix("free_bytes 2.5\n"))
    }

    @Test func `Buckets of a histogram are cumulative`() {
        let metrics = Metrics()
        let duration = metrics.histogram(
            "request_seconds", "R.", buckets: [0.1, 1], label: ("kind", ["a", "b"]))
        for seconds in [0.05, 0.1, 0.5, 7] { duration.observe(seconds, "b") }
        #expect(
            text(metrics) == """
                # HELP request_seconds R.
                # TYPE request_seconds histogram
                request_seconds_bucket{kind="a",le="0.1"} 0
                request_seconds_bucket{kind="a",le="1"} 0
                request_seconds_bucket{kind="a",le="+Inf"} 0
                request_seconds_sum{kind="a"} 0
                request_seconds_count{kind="a"} 0
                request_seconds_bucket{kind="b",le="0.1"} 2
                request_seconds_bucket{kind="b",le="1"} 3
                request_seconds_bucket{kind="b",le="+Inf"} 4
                request_seconds_sum{kind="b"} 7.65
                request_seconds_count{kind="b"} 4

                """)
    }

    @Test func `Help and label values are escaped`() {
        let metrics = Metrics()
        _ = metrics.counter("x_total", "a\\b\n\"c\"", label: ("l", ["\"\\\n"]))
        #expect(text(metrics).contains("# HELP x_total a\\\\b\\n\"c\"\n"))
        #expect(text(metrics).contains("x_total{l=\"\\\"\\\\\\n\"} 0\n"))
    }

    @Test func `Concurrent additions are all counted`() async {
        let metrics = Metrics()
        let counter = metrics.counter("x_total", "X.")
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { for _ in 0..<1_000 { counter.add(1) } } }
        }
        #expect(counter.value() == 8_000)
    }
}
