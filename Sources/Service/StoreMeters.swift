import Base
import Core
import Store

/// The metrics of the store.
struct StoreMeters: Sendable {
    private let commits: Metrics.Histogram
    private let writes: Metrics.Counter
    private let roundTrips: Metrics.Counter
    private let log: Metrics.Gauge
    private let tasks: Metrics.Gauge
    private let oldest: Metrics.Gauge
    private let launches: Metrics.Gauge
    private let stored: Metrics.Gauge

    private static let launchStates: [LaunchState.Phase] = [.pending, .delivering, .launched, .parked]

    init(_ metrics: Metrics) {
        commits = metrics.histogram(
            "urlsessiond_commit_duration_seconds", "Duration of commits to the database.",
            buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5])
        writes = metrics.counter("urlsessiond_commit_writes_total", "Changes in the commits.")
        roundTrips = metrics.counter(
            "urlsessiond_commit_round_trips_total", "Round trips of commits to the database server.")
        log = metrics.gauge("urlsessiond_wal_bytes", "Length of the database's write-ahead log.")
        tasks = metrics.gauge(
            "urlsessiond_tasks", "Unfinished tasks, by phase.",
            label: ("phase", StoreFigures.Phase.allCases.map(\.rawValue)))
        oldest = metrics.gauge(
            "urlsessiond_oldest_queued_task_seconds", "Age of the oldest queued task.")
        launches = metrics.gauge(
            "urlsessiond_launches", "Unfinished launches, by state.",
            label: ("state", Self.launchStates.map(\.rawValue)))
        stored = metrics.gauge("urlsessiond_stored_bytes", "Bytes of contents and bodies that apps have stored.")
    }

    func count(_ commit: StoreCommit) {
        commits.observe(commit.duration.seconds)
        writes.add(Int64(commit.writes))
        roundTrips.add(Int64(commit.roundTrips))
        log.set(Double(commit.logBytes))
    }

    func show(_ figures: StoreFigures, at now: Timestamp) {
        for phase in StoreFigures.Phase.allCases { tasks.set(Double(figures.tasks[phase] ?? 0), phase.rawValue) }
        for state in Self.launchStates { launches.set(Double(figures.launches[state] ?? 0), state.rawValue) }
        oldest.set(figures.oldestQueued.map { max(0, (now - $0).seconds) } ?? 0)
        stored.set(Double(figures.storedBytes))
    }
}
