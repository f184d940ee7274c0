package import Core
package import Wire

extension Core.BackgroundRefresh.Interval {
    package init(_ wire: FetchInterval) {
        switch wire {
        case .never: self = .never
        case .minimum: self = .minimum
        case .seconds(let seconds): self = .seconds(seconds)
        }
    }
}

extension FetchInterval {
    package init(_ core: Core.BackgroundRefresh.Interval) {
        switch core {
        case .never: self = .never
        case .minimum: self = .minimum
        case .seconds(let seconds): self = .seconds(seconds)
        }
    }
}

extension Wire.BackgroundRefresh {
    package init(_ overview: RefreshOverview) {
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
