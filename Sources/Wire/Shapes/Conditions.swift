/// What the operator declares about the machine's surroundings. `PUT` sets all; what is absent has its default.
public struct Conditions: Shape {
    /// The network.
    public var network: Network = Network()
    /// The power.
    public var power: Power = Power()
    /// The load average per processor above which discretionary work waits; `nil` for any.
    public var maximumLoad: Double?
    /// When discretionary work may run; none means always.
    public var windows: [Window] = []
    /// Whether Background App Refresh is allowed to any app.
    public var backgroundRefreshStatus: BackgroundRefreshStatus = .available

    public init() {}

    public init(
        network: Network = Network(), power: Power = Power(), maximumLoad: Double? = nil, windows: [Window] = [],
        backgroundRefreshStatus: BackgroundRefreshStatus = .available
    ) {
        self.network = network
        self.power = power
        self.maximumLoad = maximumLoad
        self.windows = windows
        self.backgroundRefreshStatus = backgroundRefreshStatus
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.defaulted("network", &network)
        members.defaulted("power", &power)
        members.nullable("maximumLoad", &maximumLoad, 0.001...10_000)
        var windows: [Window]? = windows
        members.nullable("windows", &windows, .count(0...100))
        self.windows = windows ?? []
        members.defaulted("backgroundRefreshStatus", &backgroundRefreshStatus)
    }
}

extension Conditions {
    /// The network.
    public struct Network: Shape {
        /// Whether there is one.
        public var reachable: Bool = true
        /// Whether it is cellular.
        public var cellular = false
        /// Whether it costs by the byte.
        public var expensive = false
        /// Whether it should be spared.
        public var constrained = false

        public init() {}

        public init(reachable: Bool = true, cellular: Bool = false, expensive: Bool = false, constrained: Bool = false)
        {
            self.reachable = reachable
            self.cellular = cellular
            self.expensive = expensive
            self.constrained = constrained
        }

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.defaulted("reachable", &reachable)
            members.defaulted("cellular", &cellular)
            members.defaulted("expensive", &expensive)
            members.defaulted("constrained", &constrained)
        }
    }

    /// The power.
    public struct Power: Shape {
        /// Whether it comes from outside.
        public var external: Bool = true
        /// Whether it should be spared.
        public var lowPowerMode = false

        public init() {}

        public init(external: Bool = true, lowPowerMode: Bool = false) {
            self.external = external
            self.lowPowerMode = lowPowerMode
        }

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.defaulted("external", &external)
            members.defaulted("lowPowerMode", &lowPowerMode)
        }
    }

    /// A stretch of the week, in UTC.
    public struct Window: Shape {
        /// The days on which it opens.
        public var days: [Weekday] = Weekday.known
        /// When it opens, `HH:MM`.
        public var from = ""
        /// When it closes, `HH:MM` or `24:00`; not after `from` means the next day.
        public var to = ""
        /// Bytes per second over all transfers while it is open.
        public var bandwidthLimit: Int64?

        public init() {}

        public init(days: [Weekday] = Weekday.known, from: String, to: String, bandwidthLimit: Int64? = nil) {
            self.days = days
            self.from = from
            self.to = to
            self.bandwidthLimit = bandwidthLimit
        }

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.defaulted("days", &days, .words(1...7))
            members.member("from", &from, .openingTime)
            members.member("to", &to, .timeOfDay)
            members.optional("bandwidthLimit", &bandwidthLimit, 1 ... .max)
        }
    }

    /// A day of the week.
    public struct Weekday: WireName {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Monday.
        public static let monday: Self = "monday"
        /// Tuesday.
        public static let tuesday: Self = "tuesday"
        /// Wednesday.
        public static let wednesday: Self = "wednesday"
        /// Thursday.
        public static let thursday: Self = "thursday"
        /// Friday.
        public static let friday: Self = "friday"
        /// Saturday.
        public static let saturday: Self = "saturday"
        /// Sunday.
        public static let sunday: Self = "sunday"
        public static let known: [Self] = [.monday, .tuesday, .wednesday, .thursday, .friday, .saturday, .sunday]
    }

}
