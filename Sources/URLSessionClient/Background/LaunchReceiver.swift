import Foundation
import Synchronization
public import Wire

/// What the app is told when it is launched, as in Apple's `UIApplicationDelegate`. Both methods are optional.
@MainActor
public protocol LaunchDelegate: AnyObject, Sendable {
    /// A session has something to handle. Make its ``BackgroundSession``, if there is none, and keep the completion
    /// handler until ``BackgroundSessionDelegate/urlSessionDidFinishEvents(forBackgroundURLSession:)``; then call it.
    ///
    /// A launch comes again when its handler was not called within the webhook's `launchDeadline`.
    func application(
        _ application: LaunchReceiver, handleEventsForBackgroundURLSession identifier: String,
        completionHandler: @escaping @Sendable () -> Void)

    /// Time to fetch. Call the completion handler within 30 s.
    func application(
        _ application: LaunchReceiver,
        performFetchWithCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void)
}

extension LaunchDelegate {
    public func application(
        _ application: LaunchReceiver, handleEventsForBackgroundURLSession identifier: String,
        completionHandler: @escaping @Sendable () -> Void
    ) {
        completionHandler()
    }

    public func application(
        _ application: LaunchReceiver,
        performFetchWithCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
    ) {
        completionHandler(.noData)
    }
}

/// What came of a fetch, as in `UIBackgroundFetchResult`.
public typealias BackgroundFetchResult = LaunchCompletion.FetchResult

/// Turns the service's webhooks into launches of the app. It fits every HTTP server: give it what came, send what it says.
///
///     let receiver = try LaunchReceiver(secrets: [secret], delegate: app)
///     // in the handler of POST /launches:
///     let answer = await receiver.respond(to: headers, body: body)
///
/// It believes only what the service signed. It answers at once, calls the delegate on the main actor, and tells the
/// service when the delegate has called its completion handler.
public final class LaunchReceiver: Sendable {
    /// What the server should answer.
    public struct Response: Sendable, Hashable {
        /// The status: 204 for what is believed, 401 for what is not signed, 400 for what cannot be read.
        public let status: Int
        /// Why, for a person; empty for 204.
        public let reason: String
    }

    /// The service, and whose key is used. The sessions that are launched should have the same client.
    public let client: Client
    private let webhook: Webhook
    private let delegate: any LaunchDelegate

    /// Makes a receiver.
    ///
    /// - Parameters:
    ///   - client: The client that the app's sessions have.
    ///   - secrets: The app's webhook secret, `whsec_…`; during a rotation the old one and the new one.
    ///   - delegate: Who is told. It is held.
    public init(
        client: Client = .shared, secrets: [String], delegate: any LaunchDelegate
    ) throws(WebhookError) {
        self.client = client
        self.delegate = delegate
        webhook = try Webhook(secrets: secrets)
    }

    /// Takes a request of the service.
    ///
    /// - Parameters:
    ///   - headers: Its header fields; names in any case.
    ///   - body: Its body, byte for byte.
    public func respond(to headers: [String: String], body: some Sequence<UInt8>) async -> Response {
        let bytes = Array(body)
        let payload: WebhookPayload
        do {
            payload = try webhook.verify(headers: headers, body: bytes)
        } catch {
            return Response(error)
        }
        do {
            try launch(payload)
        } catch {
            return Response(status: 400, reason: "\(error)")
        }
        return Response(status: 204, reason: "")
    }

    private func launch(_ payload: WebhookPayload) throws(JSONError) {
        switch payload.type {
        case "session.handleEvents":
            let launch: WebhookPayload.HandleEvents = try payload.data.read()
            Task { await handleEvents(launch) }
        case "app.performFetch":
            let launch: WebhookPayload.PerformFetch = try payload.data.read()
            Task { await performFetch(launch) }
        default: break
        }
    }

    private func handleEvents(_ launch: WebhookPayload.HandleEvents) async {
        let (client, identifier, launchId) = (client, launch.sessionIdentifier, launch.launchId)
        await delegate.application(self, handleEventsForBackgroundURLSession: identifier) {
            // What no session object has told its delegate stays for the next launch.
            let told = client.openSessions[identifier]?.facts.withLock { $0.told } ?? 0
            Self.insist { _ = try await client.completeLaunch(launchId, through: told) }
        }
        await client.openSessions[identifier]?.wasLaunched(through: launch.lastSeq)
    }

    private func performFetch(_ launch: WebhookPayload.PerformFetch) async {
        let (client, launchId) = (client, launch.launchId)
        await delegate.application(
            self,
            performFetchWithCompletionHandler: { result in
                Self.insist { _ = try await client.completeFetch(launchId, result: result) }
            })
    }

    /// Calls the service for a minute and a half at most; a launch that is not completed comes again.
    private static func insist(_ call: @escaping @Sendable () async throws -> Void) {
        Task { try await Patience.insist(limit: 10, call) }
    }
}

extension LaunchReceiver.Response {
    /// The answer to a webhook that is not believed.
    init(_ error: WebhookError) { self.init(status: error == .unreadable ? 400 : 401, reason: "\(error)") }
}
