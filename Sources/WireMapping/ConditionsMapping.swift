package import Core
package import Wire

extension Core.Conditions {
    package init(_ wire: Wire.Conditions) {
        self.init()
        network.reachable = wire.network.reachable
        network.cellular = wire.network.cellular
        network.expensive = wire.network.expensive
        network.constrained = wire.network.constrained
        power.external = wire.power.external
        power.lowPowerMode = wire.power.lowPowerMode
        maximumLoad = wire.maximumLoad
        windows = wire.windows.map(ServiceWindow.init)
    }
}

extension Wire.Conditions {
    package init(_ core: Core.Conditions, _ status: Core.BackgroundRefreshStatus) {
        self.init()
        network.reachable = core.network.reachable
        network.cellular = core.network.cellular
        network.expensive = core.network.expensive
        network.constrained = core.network.constrained
        power.external = core.power.external
        power.lowPowerMode = core.power.lowPowerMode
        maximumLoad = core.maximumLoad
        windows = core.windows.map(Window.init)
        backgroundRefreshStatus = Wire.BackgroundRefreshStatus(status)
    }
}

extension ServiceWindow {
    package init(_ wire: Wire.Conditions.Window) {
        self.init(
            days: Set(wire.days.compactMap { Weekday($0) }), from: Self.minutes(wire.from),
            to: Self.minutes(wire.to), bandwidthLimit: wire.bandwidthLimit)
    }

    /// Minutes from midnight of `HH:MM`, which was checked when the request was read.
    private static func minutes(_ text: String) -> Int {
        text.split(separator: ":").reduce(0) { $0 * 60 + (Int($1) ?? 0) }
    }
}

extension Wire.Conditions.Window {
    package init(_ core: ServiceWindow) {
        self.init(
            days: Wire.Conditions.Weekday.known.filter { day in
                core.days.contains { $0.rawValue == day.rawValue }
            },
            from: Self.text(core.from), to: Self.text(core.to), bandwidthLimit: core.bandwidthLimit)
    }

    private static func text(_ minutes: Int) -> String {
        [minutes / 60, minutes % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
}
