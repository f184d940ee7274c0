import Base
import Buckets
import CSimulation
import Core
import Files
import Formats
import Launches
import SQL
import Service
import Store

/// A client with its own session: it calls the program at random, repeats lost calls, and compares every response with
/// earlier confirmations.
final class Client: @unchecked Sendable {
    let number: Int
    let world: World
    let dice = Dice.clients
    var session: SessionRecord?
    var tasks: [KnownTask] = []
    var log = EventLog()
    /// Confirmed and requested.
    var (acknowledged, acknowledging): (Int64, Int64) = (0, 0)
    var configuration = SessionConfiguration()
    private(set) var isDone = false
    /// The session was invalidated: new tasks are refused.
    var mayCancel = false
    var isInvalidated = false
    var lastTask = 0
    var epoch: Int64?
    var bodies: [(id: String, bytes: [UInt8])] = []
    var set: SetRecord?
    var mayHaveSet = false
    /// Whether an unrelated file has the place of the set.
    var isObstructed = false
    /// Whether the disk has led a reader to a version of the set.
    var hasBeenShown = false
    var versions: [KnownVersion] = []
    var hub: Hub?
    /// Paths of destinations that the client has overwritten.
    var scribbled: Set<String> = []

    init(_ number: Int, _ world: World) {
        self.number = number
        self.world = world
    }

    var trace: Trace { world.trace }
    var plan: Plan { world.plan }
    var identifier: String { "s\(number)" }

    // MARK: Calls

    /// Calls the program once. `nil` if the response was lost, or refused for a temporary reason; the call may have had
    /// its effect.
    func attempt<Value: Sendable>(
        _ name: String, _ body: @escaping @Sendable (Service, SessionRecord?) async throws -> Value
    ) async throws -> Value? {
        let session = session
        do {
            let value = try await world.call(of: world.app) { service, _ in try await body(service, session) }
            trace.note("client \(number) \(name): done")
            return value
        } catch is Life.Lost {
            trace.note("client \(number) \(name): lost")
        } catch let error as ServiceError where mayFail(error) {
            trace.note("client \(number) \(name): \(error)")
        } catch let error as ObjectGone where plan.has(.objects) {
            // The API responds like that the contents are not available now.
            trace.note("client \(number) \(name): \(error)")
        } catch let error as BucketFault where plan.has(.storeErrors) {
            // A response that has begun is cut.
            trace.note("client \(number) \(name): \(error)")
        } catch let error as SQLError where world.mayFail(error) {
            trace.note("client \(number) \(name): \(error)")
        } catch let error as SystemError where world.mayFail(error) {
            trace.note("client \(number) \(name): \(error)")
        }
        await world.simulator.pause(dice.between(20, 2000))
        return nil
    }

    private func mayFail(_ error: ServiceError) -> Bool {
        switch error {
        case .insufficientStorage, .shuttingDown: true
        case .contentsUnavailable, .overloaded: plan.has(.objects)
        default: false
        }
    }

    /// Calls until there is a response. The call has to be repeatable.
    func insist<Value: Sendable>(
        _ name: String, _ body: @escaping @Sendable (Service, SessionRecord?) async throws -> Value
    ) async throws -> Value {
        while true { if let value = try await attempt(name, body) { return value } }
    }

    // MARK: Living

    func live() async {
        do {
            try await open()
            while world.isTroubled {
                await world.simulator.pause(dice.between(5, 3000))
                try await act()
            }
            try await finish()
        } catch {
            trace.fail("client \(number): \(error)")
        }
        isDone = true
    }

    func open() async throws {
        configuration.retryPolicy = dice.pick([
            .robust, .apple, .custom(RetryPolicy.Settings(initialDelay: 0.1, maximumDelay: 2)),
        ])
        configuration.timeoutIntervalForRequest = dice.pick([2, 10, 60])
        configuration.sessionSendsLaunchEvents = dice.chance(800)
        configuration.httpMaximumConnectionsPerHost = dice.pick([1, 2, 6])
        // Long resources are longer with a bucket, and the nodes divide the bandwidth.
        let bandwidths: [Int64] = plan.has(.objects) ? [200_000, 2_000_000] : [20_000, 200_000]
        if dice.chance(100) { configuration.bandwidthLimit = dice.pick(bandwidths) }
        // Readers have time.
        if plan.has(.longReads) { configuration.bandwidthLimit = 6_000_000 }
        if dice.chance(200) { configuration.authenticationChallenges = .performDefaultHandling }
        if dice.chance(100) { configuration.stallInterval = 5 }
        if plan.has(.sharing) { configuration.requestCachePolicy = Dice.stores.pick(CachePolicy.allCases) }
        let (app, configuration, identifier) = (world.app, configuration, identifier)
        session = try await insist("open session") { service, _ in
            try await service.openSession(
                identifier, app: app, configuration: configuration, description: nil, onlyCreates: false, recording: nil
            ).session
        }
    }

    func act() async throws {
        if plan.has(.sharing), Dice.stores.chance(20) { try await emptyCache() }
        if plan.has(.sets), Dice.stores.chance(300) { return try await actOnSet() }
        let known = tasks.filter { $0.number != nil }
        if plan.has(.fetches), Dice.extras.chance(100) { return try await actOnLaunches() }
        switch dice.below(19) {
        case 0, 1, 2, 3: if lastTask < plan.tasks { try await create() }
        case 4: if plan.has(.commands), let task = known.randomElement(using: dice) { try await cancel(task) }
        case 5:
            if plan.has(.commands), let task = known.randomElement(using: dice) { try await command(.suspend, task) }
        case 6: if plan.has(.commands), let task = known.randomElement(using: dice) { try await command(.resume, task) }
        case 7: try await readEvents()
        case 8: try await acknowledge()
        case 9: if let task = known.randomElement(using: dice) { try await look(at: task) }
        case 10: try await answerQuestions(kindly: false)
        case 11: if plan.has(.retries), let task = known.randomElement(using: dice) { try await retry(task) }
        case 12: if plan.has(.commands), let task = known.randomElement(using: dice) { try await change(task) }
        case 13: if plan.has(.commands), let task = known.randomElement(using: dice) { try await claim(task) }
        case 14: if plan.has(.attachments) { try await attach() }
        case 15: if plan.has(.sessions), dice.chance(80) { try await invalidate() }
        case 16: if plan.has(.bodies) { try await storeBody() }
        case 17: if plan.has(.apps), dice.chance(200) { try await world.changeApp(dice.below(4)) }
        default: try await handleLaunch()
        }
    }
}

extension Array {
    func randomElement(using dice: Dice) -> Element? { isEmpty ? nil : self[dice.below(count)] }
}
