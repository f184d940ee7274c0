import Core
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
