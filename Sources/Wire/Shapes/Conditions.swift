/// The operator's declaration of the machine's conditions. `PUT` sets all members; an absent one gets its default.
public struct Conditions: Shape {
    public var network = Network()
    public var power = Power()
    /// The maximum load for discretionary work: the time that work waits, in relation to the time that it runs. `nil`
    /// for no limit.
    public var maximumLoad: Double?
    /// The times at which discretionary work may run; an empty list means always.
    public var windows: [Window] = []
    /// Whether Background App Refresh is allowed for any app.
    public var backgroundRefreshStatus: BackgroundRefreshStatus = .available

    public init() {}

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
    public struct Network: Shape {
        /// Whether there is a network.
        public var reachable = true
        public var cellular = false
        /// Whether the network charges by the byte.
        public var expensive = false
        /// Whether the network should be spared.
        public var constrained = false

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.defaulted("reachable", &reachable)
            members.defaulted("cellular", &cellular)
            members.defaulted("expensive", &expensive)
            members.defaulted("constrained", &constrained)
        }
    }

    public struct Power: Shape {
        /// Whether the machine has external power.
        public var external = true
        /// Whether power should be saved.
        public var lowPowerMode = false

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.defaulted("external", &external)
            members.defaulted("lowPowerMode", &lowPowerMode)
        }
    }

    /// A period of the week, in UTC.
    public struct Window: Shape {
        /// The days on which the window opens.
        public var days: [Weekday] = Weekday.known
        /// The opening time, `HH:MM`.
        public var from = ""
        /// The closing time, `HH:MM` or `24:00`; on the next day if it is not after `from`.
        public var to = ""
        /// Bytes per second of all transfers while the window is open.
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
        public static let monday: Self = "monday"
        public static let tuesday: Self = "tuesday"
        public static let wednesday: Self = "wednesday"
        public static let thursday: Self = "thursday"
        public static let friday: Self = "friday"
        public static let saturday: Self = "saturday"
        public static let sunday: Self = "sunday"
        public static let known: [Self] = [.monday, .tuesday, .wednesday, .thursday, .friday, .saturday, .sunday]
    }
}
