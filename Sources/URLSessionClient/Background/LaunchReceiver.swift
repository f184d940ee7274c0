import Foundation
import Synchronization
public import Wire

/// The receiver of the app's launches, as in Apple's `UIApplicationDelegate`. Both methods are optional.
@MainActor
public protocol LaunchDelegate: AnyObject, Sendable {
    /// A session has events to handle. Create its ``BackgroundSession``, if there is none, and keep the completion
    /// handler until ``BackgroundSessionDelegate/urlSessionDidFinishEvents(forBackgroundURLSession:)``; then call it.
    ///
    /// The launch is repeated if its handler was not called within the webhook's `launchDeadline`.
    func application(
        _ application: LaunchReceiver, handleEventsForBackgroundURLSession identifier: String,
        completionHandler: @escaping @Sendable () -> Void)

    /// A fetch is due. Call the completion handler within 30 s.
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

/// The result of a fetch, as in `UIBackgroundFetchResult`.
public typealias BackgroundFetchResult = LaunchCompletion.FetchResult

/// Converts the service's webhooks to launches of the app. It works with every HTTP server: pass it each request, and
/// send its response.
///
///     let receiver = try LaunchReceiver(secrets: [secret], delegate: app)
///     // in the handler of POST /launches:
///     let answer = await receiver.respond(to: headers, body: body)
///
/// It accepts only requests that the service signed. It responds at once, calls the delegate on the main actor, and
/// completes the launch when the delegate has called its completion handler.
public final class LaunchReceiver: Sendable {
    /// The response that the server should send.
    public struct Response: Sendable, Hashable {
        /// The status: 204 if the request is accepted, 401 if it is not signed, 400 if it cannot be read.
        public let status: Int
        /// The reason in words; empty for 204.
        public let reason: String
    }

    /// The service and the app's key. The launched sessions should have the same client.
    public let client: Client
    private let webhook: Webhook
    private let delegate: any LaunchDelegate

    /// Creates a receiver.
    ///
    /// - Parameters:
    ///   - client: The client of the app's sessions.
    ///   - secrets: The app's webhook secret, `whsec_…`; during a rotation the old one and the new one.
    ///   - delegate: The receiver of the launches. It is retained.
    public init(
        client: Client = .shared, secrets: [String], delegate: any LaunchDelegate
    ) throws(WebhookError) {
        self.client = client
        self.delegate = delegate
        webhook = try Webhook(secrets: secrets)
    }

    /// Handles a request of the service.
    ///
    /// - Parameters:
    ///   - headers: Its header fields, with names in any case.
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
            // Messages that no session object has delivered stay for the next launch.
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

    /// Retries a call of the service for a minute and a half. A launch without a completion is repeated anyway.
    private static func insist(_ call: @escaping @Sendable () async throws -> Void) {
        Task { try await Patience.insist(limit: 10, call) }
    }
}

extension LaunchReceiver.Response {
    /// The response to a refused webhook.
    init(_ error: WebhookError) { self.init(status: error == .unreadable ? 400 : 401, reason: "\(error)") }
}
