import Base
import Core
import Launches
import SQL
import TestSupport
import Testing
import TransferEngine

@testable import Store

@Suite struct DeliveryTests {
    @Test func `A launch is posted and signed, with the session's state`() async throws {
        let stage = try await Stage { $0.includeEvents = 2 }
        let session = try await stage.finishTask(in: "com.example.bg:1")
        try await stage.running { _ in
            let delivery = try await stage.receiver.waitForDelivery()[0]
            let launch = try await stage.waitForLaunch("launched")
            #expect(delivery.method == "POST")
            #expect(delivery.id == launch.launchId)
            #expect(delivery.isSigned(with: Stage.secretText))
            #expect(delivery.fields["webhook-timestamp"] == "1800000000")
            #expect(delivery.fields["content-type"] == "application/json")
            #expect(delivery.fields["user-agent"] == "urlsessiond/1.2.3")
            #expect(delivery.fields["traceparent"]?.hasPrefix("00-0af7") == true)
            let json = delivery.json
            #expect(json["type"].string == "session.handleEvents")
            #expect(json["timestamp"].string == launch.createdAt.rfc3339)
            let data = json["data"]
            #expect(data["launchId"].string == launch.launchId)
            #expect(data["app"].string == "com.example.app")
            #expect(data["sessionIdentifier"].string == "com.example.bg:1")
            #expect(data["lastSeq"].int == 2)
            #expect(data["pendingEvents"].int == 2)
            #expect(data["taskCounts"]["cancelled"].int == 1)
            #expect(data["taskCounts"]["succeeded"].int == 0)
            #expect(data["eventsURL"].string == "https://public.example/v1/sessions/com.example.bg:1/events")
            #expect(data["completionURL"].string == "https://public.example/v1/launches/\(launch.launchId)/complete")
            #expect(data["expiresAt"].string == launch.expiresAt?.rfc3339)
            #expect(data["events"][1]["type"].string == "task.didComplete")
            #expect(data["events"][1]["data"]["outcome"].string == "cancelled")
            #expect(data["events"][1]["data"]["error"]["code"].int == -999)
            #expect(delivery.body.allSatisfy { $0 < 0x80 })
            _ = try await stage.store.launches.answer(
                launch.launchId, app: stage.app, with: .completed(through: nil), epoch: nil, at: stage.now)
            let record = try await stage.store.sessions.read(session)
            #expect(record.acknowledgedSeq == 2)
            #expect(record.lastEventSeq == 3)
            #expect(record.openLaunch == nil)
            #expect(try await stage.onlyLaunch().state.name == "completed")
        }
    }

    @Test func `The response completes the launch`() async throws {
        let stage = try await Stage(answers: [.json(["completed": true])])
        let session = try await stage.finishTask()
        try await stage.running { _ in
            let launch = try await stage.waitForLaunch("completed")
            #expect(launch.state == .completed(at: stage.now))
            #expect(launch.attempts.map(\.statusCode) == [200])
            #expect(launch.attempts[0].excerpt == #"{"completed":true}"#)
            let record = try await stage.store.sessions.read(session)
            #expect(record.acknowledgedSeq == 2)
            #expect(record.openLaunch == nil)
        }
    }

    @Test func `A completion beyond the last event counts as launched`() async throws {
        let stage = try await Stage(answers: [.json(["completed": true, "through": 99])])
        try await stage.finishTask()
        try await stage.running { _ in
            let launch = try await stage.waitForLaunch("launched")
            #expect(launch.attempts[0].error != nil)
        }
    }

    @Test func `A failed attempt is repeated with the same id and body and a new signature`() async throws {
        let stage = try await Stage(answers: [.close, .status(500), .launched])
        try await stage.finishTask()
        try await stage.running { _ in
            try await stage.receiver.waitForDelivery()
            let waiting = try await eventually("a retry") {
                let launch = try await stage.onlyLaunch()
                return launch.attempts.count == 1 && launch.state.name == "pending" ? launch : nil
            }
            guard case .pending(1, let due) = waiting.state else { throw DomainError.notFound }
            #expect(due >= stage.now + .seconds(5) && due <= stage.now + .seconds(6))
            // Later events change no byte.
            try await stage.finishTask()
            stage.advance(by: 6)
            try await stage.receiver.waitForDelivery(count: 2)
            try await eventually("a second retry") { try await stage.onlyLaunch().attempts.count == 2 }
            stage.advance(by: 36)
            let all = try await stage.receiver.waitForDelivery(count: 3)
            #expect(Set(all.map(\.id)).count == 1)
            #expect(Set(all.map(\.body)).count == 1)
            #expect(Set(all.map { $0.fields["webhook-signature"] }).count == 3)
            #expect(all.allSatisfy { $0.isSigned(with: Stage.secretText) })
            let launch = try await stage.waitForLaunch("launched")
            #expect(launch.attempts.map(\.statusCode) == [nil, 500, 204])
            let peer = "127.0.0.1:\(stage.receiver.port)"
            #expect(launch.attempts[0].error == "Connection to \(peer) closed without a response.")
        }
    }

    @Test func `A launch that is not completed in time is sent again`() async throws {
        let stage = try await Stage { $0.launchDeadline = 5 }
        try await stage.finishTask()
        try await stage.running { _ in
            try await stage.waitForLaunch("launched")
            stage.advance(by: 5)
            let launch = try await stage.waitForLaunch("pending")
            #expect(launch.attempts[0].error == "notCompleted")
            stage.advance(by: 6)
            let all = try await stage.receiver.waitForDelivery(count: 2)
            #expect(all[0].id == all[1].id)
            let again = try await stage.waitForLaunch("launched")
            _ = try await stage.store.launches.answer(
                again.launchId, app: stage.app, with: .completed(through: nil), epoch: nil, at: stage.now)
            #expect(try await stage.onlyLaunch().state.name == "completed")
        }
    }

    @Test func `410 disables the webhook and parks the launch until it is enabled`() async throws {
        let stage = try await Stage(answers: [.status(410), .launched])
        try await stage.finishTask()
        try await stage.running { _ in
            try await stage.waitForLaunch("parked")
            let webhook = try await stage.store.apps.read(stage.app).webhook
            #expect(webhook.state == .disabled)
            #expect(webhook.disabledReason == "The receiver answered 410 Gone.")
            try await stage.webhook { $0.state = .enabled }
            #expect(try await stage.store.apps.read(stage.app).webhook.disabledReason == nil)
            try await stage.receiver.waitForDelivery(count: 2)
            try await stage.waitForLaunch("launched")
        }
    }

    @Test(arguments: [100, 172_800] as [Int64])
    func `A longer Retry-After delays the next attempt, also by days`(_ wait: Int64) async throws {
        let stage = try await Stage(answers: [.status(503, [("Retry-After", "\(wait)")])])
        try await stage.finishTask()
        try await stage.running { _ in
            let launch = try await eventually("a retry") {
                let launch = try await stage.onlyLaunch()
                return launch.attempts.isEmpty ? nil : launch
            }
            #expect(launch.state == .pending(attempts: 1, nextAttemptAt: stage.now + .seconds(wait)))
        }
    }

    @Test func `A late completion makes the retry unnecessary`() async throws {
        let stage = try await Stage(answers: [.status(503, [("Retry-After", "100")])])
        try await stage.finishTask()
        try await stage.running { _ in
            let launch = try await eventually("a failed attempt") {
                let launch = try await stage.onlyLaunch()
                return launch.attempts.isEmpty ? nil : launch
            }
            _ = try await stage.store.launches.answer(
                launch.launchId, app: stage.app, with: .completed(through: nil), epoch: nil, at: stage.now)
            #expect(try await stage.onlyLaunch().state.name == "completed")
            stage.advance(by: 101)
            try await stays("no retry", for: .milliseconds(300)) { stage.receiver.deliveries.count == 1 }
        }
    }

    @Test func `A redirect is a failure and is not followed`() async throws {
        let stage = try await Stage(answers: [.status(302, [("Location", "/elsewhere")])])
        try await stage.finishTask()
        try await stage.running { _ in
            let launch = try await eventually("an attempt") {
                let launch = try await stage.onlyLaunch()
                return launch.attempts.isEmpty ? nil : launch
            }
            #expect(launch.attempts[0].statusCode == 302)
            #expect(launch.state.name == "pending")
            #expect(stage.receiver.deliveries.count == 1)
        }
    }

    @Test func `An endless response is cut, and its status counts`() async throws {
        let stage = try await Stage()
        stage.receiver.respond { _ in
            .json(.string(String(repeating: "a", count: 4_000_000)))
        }
        try await stage.finishTask()
        try await stage.running { _ in
            let launch = try await stage.waitForLaunch("launched")
            #expect(launch.attempts[0].excerpt?.utf8.count == 1024)
        }
    }

    @Test func `At most four attempts are in flight for one webhook`() async throws {
        let gate = Gate()
        let stage = try await Stage(answers: [.hold(gate)])
        for number in 0..<7 { try await stage.finishTask(in: "s\(number)") }
        try await stage.running { _ in
            try await stage.receiver.waitForDelivery(count: 4)
            try await stays("four deliveries", for: .milliseconds(300)) { stage.receiver.deliveries.count == 4 }
            gate.open()
            try await stage.receiver.waitForDelivery(count: 7)
            #expect(Set(stage.receiver.deliveries.map(\.id)).count == 7)
        }
    }

    @Test func `A dead receiver delays no other receiver`() async throws {
        let gate = Gate()
        let stage = try await Stage(answers: [.hold(gate)])
        let healthy = try Receiver()
        for number in 0..<10 { try await stage.finishTask(in: "s\(number)") }
        try await stage.finishTask(of: try await stage.addApp("other", url: healthy.url))
        try await stage.running { _ in
            try await healthy.waitForDelivery()
            gate.open()
        }
    }

    @Test func `Silent receivers of many apps delay no other receiver`() async throws {
        // Longer than the test, so that no silent attempt ends in it.
        let stage = try await Stage(answers: [.hang], timeout: .seconds(600))
        let healthy = try Receiver()
        for number in 0..<20 {
            let app = try await stage.addApp("silent\(number)", url: stage.receiver.url)
            for session in 0..<4 { try await stage.finishTask(in: "s\(session)", of: app) }
        }
        try await stage.running { _ in
            // The last slots are reserved for apps without an attempt in flight.
            try await stage.receiver.waitForDelivery(count: LaunchSlots.total - LaunchSlots.kept)
            try await stage.finishTask(of: try await stage.addApp("first", url: healthy.url))
            try await healthy.waitForDelivery(count: 1)
        }
    }

    @Test func `Silent receivers beyond the slots release them after a second`() async throws {
        let stage = try await Stage(answers: [.hang], timeout: .seconds(600))
        let healthy = try Receiver()
        for number in 0..<(LaunchSlots.total + 6) {
            try await stage.finishTask(of: try await stage.addApp("silent\(number)", url: stage.receiver.url))
        }
        try await stage.running { _ in
            try await stage.receiver.waitForDelivery(count: LaunchSlots.total)
            try await stage.finishTask(of: try await stage.addApp("other", url: healthy.url))
            stage.advance(by: 1)
            try await healthy.waitForDelivery()
            try await stage.receiver.waitForDelivery(count: LaunchSlots.total + 6)
        }
    }

    @Test func `A launch whose body cannot be read is a failed attempt and is retried on its schedule`() async throws {
        let stage = try await Stage { $0.includeEvents = 1 }
        try await stage.finishTask()
        try await stage.store.database.write { try $0.execute("UPDATE task SET result_document = ?1", [UInt8(0)]) }
        try await stage.running { _ in
            let launch = try await eventually("an attempt") {
                let launch = try await stage.onlyLaunch()
                return launch.attempts.isEmpty ? nil : launch
            }
            #expect(launch.attempts[0].error == "The service could not make the request.")
            guard case .pending(1, let due) = launch.state else { throw DomainError.notFound }
            #expect(due >= stage.now + .seconds(5))
            #expect(stage.receiver.deliveries.isEmpty)
        }
    }

    @Test func `Plain http and its address both need the operator's permission`() async throws {
        for (allowsHTTP, egress) in [(false, "127.0.0.0/8"), (true, "10.0.0.0/8")] {
            let stage = try await Stage(allowsHTTP: allowsHTTP, egress: egress)
            try await stage.finishTask()
            try await stage.running { _ in
                let launch = try await eventually("an attempt") {
                    let launch = try await stage.onlyLaunch()
                    return launch.attempts.isEmpty ? nil : launch
                }
                #expect(launch.attempts[0].error == "A policy of the service does not allow this connection.")
                #expect(stage.receiver.deliveries.isEmpty)
            }
        }
    }

    @Test(arguments: [
        ("https://localhost/", "", "--allow-egress 127.0.0.1/32"), ("https://a.localhost/", "", "--allow-egress"),
        ("https://localhost/", "127.0.0.0/8", nil), ("https://app.example/", "", nil),
        ("https://8.8.8.8/", "", nil), ("http://app.example/", "", nil),
        ("http://8.8.8.8/", "", "use https"), ("http://8.8.8.8/", "8.8.8.8/32", nil),
        ("http://10.0.0.1/", "127.0.0.0/8", "--allow-egress 10.0.0.1/32"), ("http://10.0.0.1/", "10.0.0.0/8", nil),
        ("https://169.254.169.254/", "169.254.0.0/16", "--allow-egress 169.254.169.254/32"),
    ]) func `A URL is checked before sending, as far as its text allows`(
        _ url: String, _ allowed: String, _ fault: String?
    ) throws {
        var settings = LaunchSettings(
            publicURL: "https://public.example/", version: "1",
            egress: EgressPolicy(allowed: CIDR(allowed).map { [$0] } ?? []), allowsHTTP: true)
        let told = settings.fault(of: try ParsedURL(url))
        #expect(fault.map { told?.contains($0) == true } ?? (told == nil), "\(told ?? "no fault")")
        settings.allowsHTTP = false
        guard url.hasPrefix("http:") else { return }
        #expect(settings.fault(of: try ParsedURL(url))?.contains("--allow-http-webhooks") == true)
    }

    @Test func `A rotated secret signs beside the new one within its grace period`() async throws {
        let stage = try await Stage()
        let new = [UInt8](repeating: 9, count: 32)
        try await stage.store.apps.rotateWebhookSecret(
            of: stage.app, to: new, previousExpiresAt: stage.now + .seconds(60), at: stage.now)
        try await stage.finishTask()
        try await stage.running { launches in
            let delivery = try await stage.receiver.waitForDelivery()[0]
            #expect(delivery.fields["webhook-signature"]?.split(separator: " ").count == 2)
            #expect(delivery.isSigned(with: Stage.secretText))
            #expect(delivery.isSigned(with: "whsec_" + new.base64))
            stage.advance(by: 61)
            _ = try await launches.ping(stage.app)
            let ping = try await stage.receiver.waitForDelivery(type: "webhook.ping")[0]
            #expect(!ping.isSigned(with: Stage.secretText))
            #expect(ping.isSigned(with: "whsec_" + new.base64))
        }
    }

    @Test func `A launch in flight at the end of the service is sent again with the same id`() async throws {
        let stage = try await Stage(answers: [.hang, .launched])
        try await stage.finishTask()
        _ = try await stage.store.launches.claimDue(
            LaunchSlots(), limit: 1, leaseUntil: stage.now + .seconds(60), at: stage.now)
        let claimed = try await stage.onlyLaunch()
        #expect(claimed.state.name == "delivering")
        stage.receiver.respond { _ in .launched }
        try await stage.running { _ in
            let delivery = try await stage.receiver.waitForDelivery()[0]
            #expect(delivery.id == claimed.launchId)
            let launch = try await stage.waitForLaunch("launched")
            #expect(launch.attempts.map(\.number) == [1])
        }
    }

    @Test func `A shutdown during an attempt charges no attempt`() async throws {
        let stage = try await Stage(answers: [.hang])
        try await stage.finishTask()
        try await stage.running { _ in _ = try await stage.receiver.waitForDelivery() }
        let launch = try await stage.onlyLaunch()
        #expect(launch.state == .pending(attempts: 0, nextAttemptAt: stage.now))
        #expect(launch.attempts.isEmpty)
    }

    @Test func `A redelivered launch is sent at once`() async throws {
        let stage = try await Stage(answers: [.status(500), .json(["completed": true])])
        try await stage.finishTask()
        try await stage.running { launches in
            try await eventually("an attempt") { try await stage.onlyLaunch().attempts.count == 1 }
            let id = try await stage.onlyLaunch().launchId
            _ = try await launches.redeliver(id, app: stage.app)
            try await stage.waitForLaunch("completed")
            await #expect(throws: DomainError.launchNotOpen) { try await launches.redeliver(id, app: stage.app) }
        }
    }

    @Test func `A ping that succeeds closes the circuit breaker`() async throws {
        let stage = try await Stage(answers: Array(repeating: .status(500), count: 20))
        try await stage.finishTask()
        try await stage.running { launches in
            // Until the circuit breaker is open.
            try await eventually("the receiver counts as away") {
                stage.advance(by: 60)
                return try await stage.onlyLaunch().attempts.count >= 6
            }
            try await stage.finishTask(in: "other")
            let deliveries = stage.receiver.deliveries.count
            stage.receiver.respond { _ in .launched }
            let attempt = try await launches.ping(stage.app)
            #expect(attempt.statusCode == 204)
            try await eventually("the fresh launch") { stage.receiver.deliveries.count >= deliveries + 2 }
        }
    }

    @Test func `A ping reports the receiver's response and is no launch`() async throws {
        let stage = try await Stage(answers: [.status(418)]) { $0.state = .paused }
        try await stage.running { launches in
            let attempt = try await launches.ping(stage.app)
            #expect(attempt.statusCode == 418)
            let delivery = try await stage.receiver.waitForDelivery()[0]
            #expect(delivery.type == "webhook.ping")
            #expect(delivery.json["data"]["app"].string == "com.example.app")
            #expect(delivery.isSigned(with: Stage.secretText))
            let launches = try await stage.store.launches.list(
                of: stage.app, session: nil, states: [], kinds: [], after: 0, limit: 10)
            #expect(launches.isEmpty)
        }
    }
}
