import API
import Base
import Core
import Files
import Glibc
import HTTPServer
import Launches
import SQL
import Service
import Store
import TransferEngine
import Transfers

/// `urlsessiond serve`: creates the parts, runs them, and stops them in order.
struct Serve {
    struct Failure: Error {
        var text: String
        var status = Command.Exit.cannotCreate
    }

    private let configuration: Configuration
    /// Reads the current settings.
    private let reread: @Sendable () throws(Configuration.Faults) -> Configuration
    private let log: Log
    private let logWriter: LogWriter
    private let clock = Clock.system

    init(
        _ configuration: Configuration, reread: @escaping @Sendable () throws(Configuration.Faults) -> Configuration
    ) {
        self.configuration = configuration
        self.reread = reread
        let lines = Log(format: configuration.logFormat, sink: { _ in })
        let logWriter = LogWriter { dropped in
            lines.line(.warning, "lines of this log were dropped: its reader is too slow", [("lines", dropped)])
        }
        self.logWriter = logWriter
        log = Log(level: configuration.logLevel, format: configuration.logFormat) { logWriter.write($0) }
    }

    static func databasePath(_ configuration: Configuration) -> String { "\(configuration.dataFolder)/urlsessiond.db" }

    func run() async throws -> Int32 {
        defer { logWriter.flush(within: Self.lastWords) }
        Self.prepareProcess()
        // libdispatch opens the descriptor of its timers with the first wait. If it cannot, waits never end.
        try await Task.sleep(for: .nanoseconds(1))
        guard LocalFile.makeFolder(configuration.dataFolder) else {
            throw Failure(text: "\(configuration.dataFolder): cannot be created: \(String(cString: strerror(errno)))")
        }
        let lock = try FolderLock(configuration.dataFolder, remedy: "stop it, or choose another --data-dir")
        defer { withExtendedLifetime(lock) {} }
        guard Signals.markFaults(at: "\(LocalFile.absolute(configuration.dataFolder))/\(DataFolder.crashMark)") else {
            throw Failure(text: "\(configuration.dataFolder): \(String(cString: strerror(errno)))")
        }
        try refuseLostDatabase()
        DataFolder.releaseReserve(of: configuration.dataFolder)
        let keys = try StartupKeys(configuration)
        let listener = try listen(configuration.listen)
        let metricsListener = try configuration.metricsListen.map(listen)
        let egress = egress(ports: [listener.port] + (metricsListener.map { [$0.port] } ?? []))
        let metrics = Metrics()
        let buckets = try ConfiguredBuckets(configuration, own: egress, clock: clock, log: log, metrics: metrics)
        let service = try openStore(keys) {
            try makeService(keys, egress, buckets, metrics, publicURL: publicURL(port: listener.port))
        }
        let lostSecrets: Bool
        do {
            lostSecrets = try await service.prepare(acceptsNewMasterKey: configuration.acceptsNewMasterKey)
        } catch is WrongMasterKey {
            keys.withdrawNewMasterKey()
            throw Failure(
                text: "\(configuration.masterKeyFile) is another key, and \(StartupKeys.remedy(configuration))")
        }
        let launches = try makeLaunches(service, egress, metrics, publicURL: publicURL(port: listener.port))
        if configuration.isDevelopment { try await Development.prepare(service, lostSecrets: lostSecrets) }
        let api = APIServer(
            settings: apiSettings(keys), service: service, launches: launches, metrics: metrics, log: log)
        let (end, hangup) = try listenForSignals()
        let router = configuration.roles.contains(.api) ? api.router : api.ownRouter
        let server = try start(api, on: listener, router, Self.certificate(configuration))
        service.nodes.onNews { launches.refreshChanged() }
        let metricsServer = try metricsListener.map { try start(api, on: $0, api.metricsRouter, nil) }
        announce(server, metricsServer)
        if let path = keys.newAdminKey { log.info("the operator's key was created", ("file", path)) }
        let renewal = Renewal(reread: reread, api: api, server: server, buckets: buckets, log: log)
        await runLoops(until: end, renewing: (renewal, at: hangup), service, launches, api) {
            await stop(server, metricsServer, service)
        }
        await buckets.shutdown()
        service.close()
        return Command.Exit.done
    }

    /// Refuses an empty database in a used folder. It is the remainder of a disk fault or of a failed copy: the folder
    /// for contents is created only after the database.
    private func refuseLostDatabase() throws(Failure) {
        let path = Self.databasePath(configuration)
        guard configuration.server == nil, LocalFile.size(path) == 0,
            LocalFile.isFolder("\(configuration.dataFolder)/contents")
        else { return }
        throw Failure(
            text:
                "\(path) is empty, although the folder was used: replace it with a backup, or remove it for a new database"
        )
    }

    /// Opens the store, and chooses the exit status if a server's store is not available.
    private func openStore(_ keys: StartupKeys, _ make: () throws -> Service) throws -> Service {
        do {
            return try make()
        } catch let error as SQLError {
            keys.withdrawNewMasterKey()
            switch error.code {
            case .superseded: throw Failure(text: "\(error)", status: Command.Exit.inUse)
            case .unreachable: throw Failure(text: "\(error)", status: Command.Exit.unavailable)
            default: throw error
            }
        }
    }

    // MARK: Creating the parts

    private func listen(_ address: Configuration.Address) throws -> Listener {
        do {
            return try Listener(address: address.host, port: address.port)
        } catch {
            throw Failure(text: "\(address.text): \(error.message)")
        }
    }

    private func egress(ports: [UInt16]) -> EgressPolicy {
        let hosts = [configuration.listen.host, configuration.metricsListen?.host].compactMap { $0 }
        return EgressPolicy(
            allowed: configuration.allowedEgress,
            ownListeners: zip(hosts, ports).compactMap { host, port in IPAddress(host).map { ($0, port) } },
            machineAddresses: MachineAddresses.current)
    }

    private func makeService(
        _ keys: StartupKeys, _ egress: EgressPolicy, _ buckets: ConfiguredBuckets, _ metrics: Metrics, publicURL: String
    ) throws -> Service {
        var settings = ServiceSettings(dataFolder: configuration.dataFolder, version: Command.version, egress: egress)
        settings.roles = configuration.roles
        settings.url = publicURL
        settings.maximumTransfers = configuration.maximumTransfers
        settings.maximumTransfersPerHost = configuration.maximumTransfersPerHost
        settings.filesRoots = configuration.filesRoots
        settings.buckets = buckets.named
        settings.contents = buckets.contents(keys.masterKey, clock: clock, log: log)
        settings.contentRetention = configuration.contentRetention
        settings.unacknowledgedRetention = configuration.unacknowledgedRetention
        settings.cacheCapacity = configuration.cacheCapacity
        settings.freeDiskFloor = configuration.freeDiskFloor
        return try Service(
            settings: settings, store: try location(), sealer: Sealer(masterKey: keys.masterKey),
            transferThreads: configuration.transferThreads, clock: clock, log: log, metrics: metrics
        ) { error in
            if (error as? SQLError)?.code == .superseded { Restart.perform(log, logWriter) }
            log.error(
                "the database connection failed: the next start determines which commits are stored",
                ("error", "\(error)"))
            exitAtOnce()
        }
    }

    /// A node has a permanent name in a server's store, which is kept in its data folder.
    private func location() throws(Failure) -> Store.Location {
        guard let server = configuration.server else { return .file(Self.databasePath(configuration)) }
        let path = "\(configuration.dataFolder)/node"
        if LocalFile.read(path) == nil { try? LocalFile.create(path, Array((RandomBytes.make(9).base62 + "\n").utf8)) }
        guard let bytes = LocalFile.read(path), !bytes.isEmpty else {
            throw Failure(text: "\(path): the node's name cannot be read: \(String(cString: strerror(errno)))")
        }
        return .server(
            server, node: String(decoding: bytes.prefix { $0 != 10 }, as: UTF8.self),
            contents: configuration.contents?.place)
    }

    private func makeLaunches(
        _ service: Service, _ egress: EgressPolicy, _ metrics: Metrics, publicURL: String
    ) throws -> Launches {
        var settings = LaunchSettings(
            publicURL: publicURL, version: Command.version, egress: egress,
            allowsHTTP: configuration.allowsHTTPWebhooks, timeout: configuration.webhookTimeout)
        let sends = configuration.roles.contains(.launch)
        settings.maySend = { sends && !service.nodes.isDraining }
        return try Launches(
            store: service.store, settings: settings,
            bell: service.outlet.launches, clock: clock, log: log, metrics: metrics,
            carryOut: { service.outlet.handle($0) })
    }

    private func apiSettings(_ keys: StartupKeys) -> APISettings {
        var settings = APISettings(
            adminKeyHash: Digest.of(Array(keys.adminKey.utf8)),
            cursorKey: HMAC.sha256(key: keys.masterKey, message: Array("cursors".utf8)))
        settings.isDevelopment = configuration.isDevelopment
        settings.corsOrigins = configuration.corsOrigins
        settings.servesPage = configuration.servesPage
        settings.rateLimit = configuration.rateLimit
        if configuration.isDevelopment { settings.literalKeys = [Development.literalKey] }
        return settings
    }

    /// The listener's certificate; nil for plain http.
    static func certificate(_ configuration: Configuration) throws(Failure) -> TLSCertificate? {
        guard let certificate = configuration.tlsCertificate, let key = configuration.tlsKey else { return nil }
        var unreadable: [String] = []
        func read(_ path: String) -> [UInt8] {
            if let bytes = LocalFile.read(path) { return bytes }
            unreadable.append("\(path): cannot be read: \(String(cString: strerror(errno)))")
            return []
        }
        let pair = (certificate: read(certificate), key: read(key))
        guard unreadable.isEmpty else { throw Failure(text: unreadable.joined(separator: "; ")) }
        do {
            return try TLSCertificate(certificate: pair.certificate, key: pair.key)
        } catch {
            throw Failure(text: "\(certificate) and \(key): \(error)")
        }
    }

    private func start(
        _ api: APIServer, on listener: Listener, _ router: Router, _ certificate: TLSCertificate?
    ) throws -> HTTPServer {
        do {
            return try HTTPServer.start(
                on: listener, certificate: certificate, router: router, refusal: { api.refuse($0, $1, $2) },
                adorn: { api.adorn($0, &$1) }, log: log, observe: { api.observe($0) })
        } catch {
            throw Failure(text: error.message)
        }
    }

    private func publicURL(port: UInt16) -> String {
        if let url = configuration.publicURL { return url.hasSuffix("/") ? String(url.dropLast()) : url }
        return configuration.url(port: port)
    }

    private func announce(_ server: HTTPServer, _ metricsServer: HTTPServer?) {
        do throws(SystemError) {
            try Command.say("urlsessiond listening on \(configuration.url(port: server.port))")
        } catch {
            log.warning("the address could not be printed to standard output", ("error", error))
        }
        let address = Configuration.Address(host: configuration.listen.host, port: server.port)
        log.info("listening", ("address", address.text), ("version", Command.version))
        if let metricsServer, let host = configuration.metricsListen?.host {
            let address = Configuration.Address(host: host, port: metricsServer.port)
            log.info("listening for metrics", ("address", address.text))
        }
        Systemd.notify("READY=1")
    }

    // MARK: Running and ending

    /// Called before the service responds or announces its port, because a supervisor may send a signal from then on.
    private func listenForSignals() throws(Failure) -> (end: SignalBell, hangup: SignalBell) {
        guard let end = SignalBell(SIGTERM, SIGINT), let hangup = SignalBell(SIGHUP) else {
            throw Failure(text: "signals: \(String(cString: strerror(errno)))", status: Command.Exit.system)
        }
        return (end, hangup)
    }

    /// Runs all loops until the service is asked to end; `stop` ends the parts while the loops still serve them.
    private func runLoops(
        until end: SignalBell, renewing: (renewal: Renewal, at: SignalBell), _ service: Service, _ launches: Launches,
        _ api: APIServer, stop: () async -> Void
    ) async {
        await withTaskGroup { group in
            group.addTask {
                await renewing.at.listen {
                    renewing.renewal.perform()
                    return true
                }
            }
            group.addTask { await runLoop("service") { try await service.run() } }
            group.addTask { await runLoop("launches") { try await launches.run() } }
            group.addTask { await api.run() }
            await end.wait()
            log.info("shutting down")
            await stop()
            group.cancelAll()
        }
    }

    /// Runs a loop that the service needs: if it fails, the process ends, and the next start recovers.
    private func runLoop(_ name: String, _ body: () async throws -> Void) async {
        do {
            try await body()
        } catch is CancellationError {
            return
        } catch {
            log.error("a loop failed", ("loop", name), ("error", "\(error)"))
            exitAtOnce()
        }
    }

    /// Stops the parts from the outside in, each step within its share of the time.
    private func stop(_ server: HTTPServer, _ metricsServer: HTTPServer?, _ service: Service) async {
        Systemd.notify("STOPPING=1")
        let limit = configuration.shutdownTimeout
        await service.drain(within: limit / 2)
        await server.stop(within: limit / 4, sending: limit / 8)
        await metricsServer?.stop(within: limit / 16, sending: limit / 16)
    }

    /// How long the process waits, at its end, for the last log lines to be written.
    private static let lastWords = Duration.milliseconds(500)

    /// Ends the process at once: stored state stays, and the next start recovers.
    private func exitAtOnce() -> Never {
        logWriter.flush(within: Self.lastWords)
        exit(Command.Exit.software)
    }

    /// Process-wide settings: no permissions for others, no core dump with secrets, one locale, many descriptors.
    private static func prepareProcess() {
        umask(0o077)
        setlocale(LC_ALL, "C")
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        var files = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0 {
            files.rlim_cur = files.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
        }
    }
}
