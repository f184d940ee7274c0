/// What the operator declares about the machine's surroundings. `PUT` sets all; what is absent has its default.
public struct Conditions: Sendable, Hashable, JSONWritable, JSONReadable {
    /// The network.
    public var network: Network
    /// The power.
    public var power: Power
    /// The load average per processor above which discretionary work waits; `nil` for any.
    public var maximumLoad: Double?
    /// When discretionary work may run; none means always.
    public var windows: [Window]
    /// Whether Background App Refresh is allowed to any app.
    public var backgroundRefreshStatus: BackgroundRefreshStatus

    /// Makes one.
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

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        network = reader.object("network", default: Network())
        power = reader.object("power", default: Power())
        maximumLoad = reader.optionalNumber("maximumLoad", in: 0.001...10_000)
        windows = reader.optionalObjects("windows", count: 0...100) ?? []
        backgroundRefreshStatus = reader.word("backgroundRefreshStatus", default: .available)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("network", network)
            writer.member("power", power)
            writer.member("maximumLoad", maximumLoad)
            writer.member("windows", windows)
            writer.member("backgroundRefreshStatus", backgroundRefreshStatus)
        }
    }
}

extension Conditions {
    /// The network.
    public struct Network: Sendable, Hashable, JSONWritable, JSONReadable {
        /// Whether there is one.
        public var reachable: Bool
        /// Whether it is cellular.
        public var cellular: Bool
        /// Whether it costs by the byte.
        public var expensive: Bool
        /// Whether it should be spared.
        public var constrained: Bool

        /// Makes one.
        public init(reachable: Bool = true, cellular: Bool = false, expensive: Bool = false, constrained: Bool = false)
        {
            self.reachable = reachable
            self.cellular = cellular
            self.expensive = expensive
            self.constrained = constrained
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            reachable = reader.bool("reachable", default: true)
            cellular = reader.bool("cellular", default: false)
            expensive = reader.bool("expensive", default: false)
            constrained = reader.bool("constrained", default: false)
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("reachable", reachable)
                writer.member("cellular", cellular)
                writer.member("expensive", expensive)
                writer.member("constrained", constrained)
            }
        }
    }

    /// The power.
    public struct Power: Sendable, Hashable, JSONWritable, JSONReadable {
        /// Whether it comes from outside.
        public var external: Bool
        /// Whether it should be spared.
        public var lowPowerMode: Bool

        /// Makes one.
        public init(external: Bool = true, lowPowerMode: Bool = false) {
            self.external = external
            self.lowPowerMode = lowPowerMode
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            external = reader.bool("external", default: true)
            lowPowerMode = reader.bool("lowPowerMode", default: false)
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("external", external)
                writer.member("lowPowerMode", lowPowerMode)
            }
        }
    }

    /// A stretch of the week, in UTC.
    public struct Window: Sendable, Hashable, JSONWritable, JSONReadable {
        /// The days on which it opens.
        public var days: [Weekday]
        /// When it opens, `HH:MM`.
        public var from: String
        /// When it closes, `HH:MM` or `24:00`; not after `from` means the next day.
        public var to: String
        /// Bytes per second over all transfers while it is open.
        public var bandwidthLimit: Int64?

        /// Makes one.
        public init(days: [Weekday] = Weekday.known, from: String, to: String, bandwidthLimit: Int64? = nil) {
            self.days = days
            self.from = from
            self.to = to
            self.bandwidthLimit = bandwidthLimit
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            days = reader.words("days", default: Weekday.known, count: 1...7)
            from = reader.string("from", .openingTime)
            to = reader.string("to", .timeOfDay)
            bandwidthLimit = reader.optionalInteger("bandwidthLimit", in: 1 ... .max)
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("days", days)
                writer.member("from", from)
                writer.member("to", to)
                writer.memberIfPresent("bandwidthLimit", bandwidthLimit)
            }
        }
    }

    /// A day of the week.
    public struct Weekday: WireName {
        /// The word.
        public let rawValue: String
        /// Makes a value of its word.
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
        /// All of them.
        public static let known: [Self] = [.monday, .tuesday, .wednesday, .thursday, .friday, .saturday, .sunday]
    }

}
