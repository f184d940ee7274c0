import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import Testing
import URLSessionClient

/// Delegates whose methods have Apple's signatures.
struct BackgroundChallengeTests {
    typealias House = ClientTests.House

    /// A delegate that answers challenges as in Apple's documentation.
    final class Applicant: BackgroundSessionTaskDelegate {
        typealias Decision = (URLSession.AuthChallengeDisposition, URLCredential?)

        struct Notes: Sendable {
            var failures: [Int] = []
            var spaces: [String] = []
            var completed = 0
        }

        private let notes = Mutex(Notes())
        private let decide: @Sendable (URLAuthenticationChallenge) -> Decision?

        init(_ decide: @escaping @Sendable (URLAuthenticationChallenge) -> Decision?) { self.decide = decide }

        var all: Notes { notes.withLock { $0 } }

        func urlSession(
            _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let space = challenge.protectionSpace
            let words = [space.host, space.protocol ?? "proxy", space.realm ?? "", space.authenticationMethod]
            notes.withLock { notes in
                notes.failures.append(challenge.previousFailureCount)
                notes.spaces.append(words.joined(separator: " "))
            }
            if let (disposition, credential) = decide(challenge) { completionHandler(disposition, credential) }
        }

        func urlSession(
            _ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?
        ) {
            notes.withLock { $0.completed += 1 }
        }
    }

    /// A session whose challenges are asked at once: with a webhook the service need not wait for an attachment.
    static func session(_ house: House, _ receiver: Receiver, _ delegate: Applicant) async throws -> BackgroundSession {
        _ = try await house.client.changeWebhook(WebhookChange { $0.url = .set(receiver.url) })
        return BackgroundSessionTests.session(house, delegate)
    }

    static func status(_ task: BackgroundSessionTask) -> Int? { (task.response as? HTTPURLResponse)?.statusCode }

    @Test func `Apple's method is called with the protection space, and its credential is used and kept`() async throws
    {
        let (house, receiver) = (try await House(), try Receiver())
        for path in ["/a", "/b"] {
            house.origin.serve(
                path, .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        }
        let applicant = Applicant { challenge in
            challenge.previousFailureCount == 0
                ? (.useCredential, URLCredential(user: "u", password: "wrong", persistence: .none))
                : (.useCredential, URLCredential(user: "u", password: "p", persistence: .forSession))
        }
        let session = try await Self.session(house, receiver, applicant)
        let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        task.resume()
        try await eventually("the end") { task.state == .completed }
        #expect(Self.status(task) == 200 && applicant.all.failures == [0, 1])
        #expect(Set(applicant.all.spaces) == ["127.0.0.1 http r NSURLAuthenticationMethodHTTPBasic"])
        let other = session.downloadTask(with: try BackgroundSessionTests.url(house, "/b"))
        other.resume()
        try await eventually("the end of the other") { other.state == .completed }
        #expect(Self.status(other) == 200 && applicant.all.failures.count == 2)
    }

    @Test func `A wrong password alone ends with the 401`() async throws {
        let (house, receiver) = (try await House(), try Receiver())
        house.origin.serve(
            "/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        let applicant = Applicant { challenge in
            guard challenge.previousFailureCount == 0 else { return (.performDefaultHandling, nil) }
            return (.useCredential, URLCredential(user: "u", password: "wrong", persistence: .none))
        }
        let session = try await Self.session(house, receiver, applicant)
        let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        task.resume()
        try await eventually("the end") { task.state == .completed }
        #expect(Self.status(task) == 401 && applicant.all.failures == [0, 1])
    }

    @Test func `The other dispositions and the challenge's sender are answers as well`() async throws {
        let (house, receiver) = (try await House(), try Receiver())
        let decisions: [(String, @Sendable (URLAuthenticationChallenge) -> Applicant.Decision?)] = [
            ("reject", { _ in (.rejectProtectionSpace, nil) }),
            ("cancel", { _ in (.cancelAuthenticationChallenge, nil) }),
            (
                "send",
                { challenge in
                    // The value of `synchronizable`, which is deprecated in Foundation on Linux.
                    let persistence = URLCredential.Persistence(rawValue: 3) ?? .none
                    challenge.sender?.use(
                        URLCredential(user: "u", password: "p", persistence: persistence), for: challenge)
                    return nil
                }
            ),
        ]
        var ends: [String: String] = [:]
        for (name, decide) in decisions {
            house.origin.serve(
                "/\(name)", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
            let session = try await Self.session(house, receiver, Applicant(decide))
            let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/\(name)"))
            task.resume()
            try await eventually("the end of \(name)") { task.state == .completed }
            ends[name] = (task.error as? URLError).map { "\($0.code.rawValue)" } ?? "\(Self.status(task) ?? 0)"
            await session.detach()
        }
        #expect(ends == ["reject": "401", "cancel": "-999", "send": "200"])
        #expect(try await house.client.credentials().items.map(\.user) == ["u"])
    }

    @Test(.enabled(if: Nginx.isAvailable))
    func `A server without trust is the session's question, and reaches the task's method by default`() async throws {
        let (house, receiver, nginx) = (try await House(), try Receiver(), try await Nginx())
        let applicant = Applicant { _ in (.cancelAuthenticationChallenge, nil) }
        let session = try await Self.session(house, receiver, applicant)
        let task = session.downloadTask(with: try #require(URL(string: nginx.url("/", .secure))))
        task.resume()
        try await eventually("the end") { task.state == .completed }
        #expect(applicant.all.spaces == ["127.0.0.1 https  NSURLAuthenticationMethodServerTrust"])
        #expect(task.error != nil)
    }

    @Test func `A credential of the wrong kind causes default handling, and one warning`() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let (house, receiver) = (try await House(), try Receiver())
            let applicant = Applicant { _ in
                (.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
            }
            let session = try await Self.session(house, receiver, applicant)
            for realm in ["first", "second"] {
                house.origin.serve(
                    "/\(realm)", .text("x"),
                    always: [.demand(authorization: "Bearer t", challenge: "Bearer realm=\"\(realm)\"")])
                let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/\(realm)"))
                task.resume()
                try await eventually("the end") { task.state == .completed }
                #expect(Self.status(task) == 401)
            }
            #expect(applicant.all.spaces.map { $0.split(separator: " ")[2] } == ["first", "second"])
        }
        let errors = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        let warnings = errors.split(separator: "\n").filter { $0.hasPrefix("URLSessionClient: session bg: ") }
        #expect(warnings.count == 1 && warnings.first?.contains("of the method HTTPBearer") == true, "\(errors)")
    }

    // MARK: Methods with async

    /// A delegate of the main actor, with the `async` forms of Apple's methods.
    @MainActor final class Clerk: BackgroundSessionTaskDelegate {
        nonisolated let asked = Mutex<[String]>([])

        private func note(_ words: String) { asked.withLock { $0.append(words) } }

        func urlSession(
            _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            note("challenge \(challenge.previousFailureCount)")
            let password = challenge.previousFailureCount == 0 ? "wrong" : "p"
            return (.useCredential, URLCredential(user: "u", password: password, persistence: .none))
        }

        func urlSession(
            _ session: BackgroundSession, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            note(challenge.protectionSpace.authenticationMethod)
            return (.cancelAuthenticationChallenge, nil)
        }

        func urlSession(
            _ session: BackgroundSession, task: BackgroundSessionTask, willBeginDelayedRequest request: URLRequest
        ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
            note("delayed \(request.url?.path ?? "")")
            return (.cancel, nil)
        }
    }

    @Test func `The async forms of Apple's methods are called`() async throws {
        let (house, receiver) = (try await House(), try Receiver())
        _ = try await house.client.changeWebhook(WebhookChange { $0.url = .set(receiver.url) })
        house.origin.serve(
            "/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        let clerk = Clerk()
        let session = BackgroundSessionTests.session(house, clerk)
        let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        task.resume()
        try await eventually("the end") { task.state == .completed }
        #expect(Self.status(task) == 200)
        let delayed = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        delayed.earliestBeginDate = Date(timeIntervalSinceNow: 0.2)
        delayed.resume()
        try await eventually("the end of the delayed one") { delayed.state == .completed }
        #expect((delayed.error as? URLError)?.code == .cancelled)
        #expect(clerk.asked.withLock { $0 } == ["challenge 0", "challenge 1", "delayed /a"])
    }

    @Test(.enabled(if: Nginx.isAvailable))
    func `The async form of the session's method is called`() async throws {
        let (house, receiver, nginx) = (try await House(), try Receiver(), try await Nginx())
        _ = try await house.client.changeWebhook(WebhookChange { $0.url = .set(receiver.url) })
        let clerk = Clerk()
        let session = BackgroundSessionTests.session(house, clerk)
        let task = session.downloadTask(with: try #require(URL(string: nginx.url("/", .secure))))
        task.resume()
        try await eventually("the end") { task.state == .completed }
        #expect(clerk.asked.withLock { $0 } == ["NSURLAuthenticationMethodServerTrust"] && task.error != nil)
    }

    // MARK: Delayed requests

    /// A delegate with Apple's methods for requests and no other protocol.
    final class Planner: BackgroundSessionDownloadDelegate {
        let asked = Mutex<[String]>([])
        let redirected = Mutex(0)

        func urlSession(
            _ session: BackgroundSession, task: BackgroundSessionTask, willBeginDelayedRequest request: URLRequest,
            completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
        ) {
            asked.withLock { $0.append(request.url?.path ?? "") }
            completionHandler(.cancel, nil)
        }

        func urlSession(
            _ session: BackgroundSession, task: BackgroundSessionTask,
            willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
            completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            redirected.withLock { $0 += 1 }
            completionHandler(nil)
        }

        func urlSession(
            _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask,
            didFinishDownloadingTo location: URL
        ) {}
    }

    @Test func `Only a delegate with the method for delayed requests is called`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"))
        let planner = Planner()
        let session = BackgroundSessionTests.session(house, planner)
        let task = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        task.earliestBeginDate = Date(timeIntervalSinceNow: 0.2)
        task.resume()
        try await eventually("the end") { task.state == .completed }
        #expect(planner.asked.withLock { $0 } == ["/a"] && (task.error as? URLError)?.code == .cancelled)
        #expect(house.origin.requests.isEmpty)
        // A task without a date is not delayed.
        let prompt = session.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        prompt.resume()
        try await eventually("the end of the other") { prompt.state == .completed }
        #expect(planner.asked.withLock { $0 }.count == 1 && prompt.error == nil)

        let recorder = Recorder()
        let other = BackgroundSessionTests.session(house, recorder, identifier: "other")
        let unasked = other.downloadTask(with: try BackgroundSessionTests.url(house, "/a"))
        unasked.earliestBeginDate = Date(timeIntervalSinceNow: 0.2)
        let shown = try await house.client.task(try await unasked.number, in: "other")
        #expect(!shown.confirmBeforeStart)
        unasked.resume()
        try await eventually("the end of the unasked one") { unasked.state == .completed }
        #expect(unasked.error == nil && recorder.messages.contains("downloaded "))
    }

    @Test func `Redirects are followed without the delegate, as in Apple's background sessions`() async throws {
        let house = try await House()
        house.origin.serve("/new", .text("new"))
        house.origin.serve("/old", .text("old"), always: [.status(302, [("Location", house.origin.url("/new"))])])
        let planner = Planner()
        let task = BackgroundSessionTests.session(house, planner).downloadTask(
            with: try BackgroundSessionTests.url(house, "/old"))
        task.resume()
        try await eventually("the end") { task.state == .completed }
        #expect(
            Self.status(task) == 200 && task.response?.url?.path == "/new" && planner.redirected.withLock { $0 } == 0)
    }
}
