import Core
import Launches
import Wire

extension Core.BackgroundRefresh.Interval {
    init(_ wire: FetchInterval) {
        switch wire {
        case .never: self = .never
        case .minimum: self = .minimum
        case .seconds(let seconds): self = .seconds(seconds)
        }
    }
}

extension FetchInterval {
    init(_ core: Core.BackgroundRefresh.Interval) {
        switch core {
        case .never: self = .never
        case .minimum: self = .minimum
        case .seconds(let seconds): self = .seconds(seconds)
        }
    }
}

extension Wire.BackgroundRefresh {
    init(_ overview: RefreshOverview) {
        self.init()
        minimumBackgroundFetchInterval = FetchInterval(overview.interval)
        backgroundRefreshStatus = Wire.BackgroundRefreshStatus(overview.status)
        nextFetchAt = overview.nextFetchAt?.rfc3339
        why = overview.why
        history = overview.history.map { fetch in
            Wire.PastFetch {
                $0.launchId = fetch.launchId
                $0.at = fetch.at.rfc3339
                $0.duration = fetch.duration?.seconds
                $0.result = fetch.result.map { LaunchCompletion.FetchResult($0) }
            }
        }
    }
}
