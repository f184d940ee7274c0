import Base
import CCurl
import Core
import Files
import Glibc
import Synchronization

/// The effects of libcurl's callbacks on an exchange, on its loop's thread, inside a call of the library.
extension Exchange.Running {
    func requestBegins() {
        isRequestSent = true
        lastActivity = state.now
        meter.enter(.sending)
        callForAttention()
    }

    func socketIsGone() {
        guard !isRequestSent else { return }
        lostSocket = true
        callForAttention()
    }

    // MARK: Heads

    /// Handles one header line. False ends the exchange.
    func takeHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        lastActivity = state.now
        do throws(HeadParser.Refused) {
            if isTunnelling {
                // libcurl handles the proxy's response; its challenge is handled here.
                if case .final(let head)? = try tunnelParser.take(line) { tunnelHead = head }
                return true
            }
            addLateCookies()
            switch try receiving.parser.take(line) {
            case nil: return true
            case .informational(let head):
                exchange.report(.informational(exchange.id, head))
                return true
            case .final(let head) where exchange.request.isChallenge(head): return try take(challenge: head)
            case .final(let head): return try settle(head)
            }
        } catch {
            return end(error.fault)
        }
    }

    /// The number of challenges that libcurl may answer in one exchange: the first one, and one with `stale=true`.
    private static let maximumChallenges = 2

    /// Leaves a challenge to libcurl, which would answer challenges with `stale=true` without end.
    private func take(challenge head: ResponseHead) throws(HeadParser.Refused) -> Bool {
        receiving.challenges[head.status, default: 0] += 1
        guard receiving.challenges[head.status, default: 0] > Self.maximumChallenges else {
            receiving.provisionalHead = head
            return true
        }
        guard try settle(head) else { return false }
        // libcurl drops the body.
        cut = .enough
        return false
    }

    /// A response before the request is sent answers the CONNECT request.
    private var isTunnelling: Bool { !isRequestSent && exchange.wantsTunnel }

    /// The request was sent, and no line that sets a cookie has been parsed yet.
    private func addLateCookies() {
        // libcurl answers a digest challenge with another request, which must not send the cookies either.
        guard !lateCookies.isEmpty, !exchange.request.mayBeChallenged else { return }
        easy.add(cookies: lateCookies)
        lateCookies = []
    }

    /// Settles a final head without body that was held back as a possible challenge.
    func settleAtEnd() {
        guard let head = receiving.provisionalHead, receiving.answer == nil else { return }
        do throws(HeadParser.Refused) { _ = try settle(head) } catch { cut = .fault(error.fault) }
    }

    /// Judges the final head. False ends the exchange.
    private func settle(_ head: ResponseHead) throws(HeadParser.Refused) -> Bool {
        receiving.provisionalHead = nil
        let announced = try head.contentLength()
        let isChunked = try head.isChunked()
        meter.enter(.receiving)
        noteConnection()
        let hasTwoFramings = announced != nil && isChunked
        // Bytes after such a response cannot be trusted.
        if hasTwoFramings { easy.set(CURLOPT_FORBID_REUSE, 1) }
        let judgement = exchange.request.judge(head)
        receiving.answer = Exchange.Answer(
            head: head, judgement: judgement, announcedLength: announced,
            isLengthVerified: announced != nil || isChunked || head.httpVersion == "2"
                || exchange.request.method == "HEAD" || head.status == 204 || head.status == 304,
            hasTwoFramings: hasTwoFramings)
        exchange.report(.head(exchange.id, head, judgement))
        switch judgement.body {
        case .keep(let offset): return keep(at: offset, announced: isChunked ? nil : announced)
        case .discard: return true
        case .skip: return skip(announced: isChunked ? nil : announced)
        case .stop:
            cut = .stopped
            return false
        }
    }

    private func keep(at offset: Int64, announced: Int64?) -> Bool {
        guard (0...sink.length).contains(offset) else { return end(.prefixMissing) }
        let length = announced.map { $0.addingSaturated(offset) }
        let hasBody = exchange.request.method != "HEAD"
        if hasBody {
            meter.expected.store(length ?? -1, ordering: .relaxed)
            if let length, let maximum = exchange.request.maximumBytes, length > maximum { return end(.tooLarge) }
        }
        let missing = length.map { min($0, sink.end) - sink.length } ?? 0
        let isLarge = hasBody && (length.map(sink.isLarge) ?? false)
        if sink.isInParts {
            // A part that the server begins at an earlier offset than requested is not in memory.
            guard offset == 0 || offset == sink.length else { return end(.prefixMissing) }
            if offset == 0 {
                sink.restart()
                sink.beginParts(expected: length)
                receiving.recorded = 0
            }
        } else if offset != sink.length {
            if case .stretch = exchange.request.sink { return end(.prefixMissing) }
            want(prefix: offset)
            // The content continues at another offset than requested.
            receiving.recorded = min(receiving.recorded, offset)
            sink.restart()
        } else if sink.file == nil, isLarge {
            want(prefix: 0)
        }
        meter.length.store(offset, ordering: .relaxed)
        // Content that does not fit the disk is refused at once, instead of failing after a partial transfer.
        guard !isLarge || exchange.room.fits(missing) else { return end(.disk(errno: ENOSPC)) }
        return true
    }

    /// Records facts that are available only while the connection is in use.
    private func noteConnection() {
        let url = exchange.url
        guard url.isSecure, exchange.metrics.negotiatedTLSProtocolVersion == nil, let session = easy.tlsSession,
            let facts = OpenSSL.shared?.facts(of: session)
        else { return }
        exchange.metrics.negotiatedTLSProtocolVersion = facts.version
        exchange.metrics.negotiatedTLSCipherSuite = facts.cipher
        // A resumed TLS session does not request a certificate again.
        if facts.asksForCertificate { handle.pool.certificateAskers.insert(url.hostAndPort) }
        asksForCertificate = handle.pool.certificateAskers.contains(url.hostAndPort)
    }

    // MARK: Bytes of the response

    enum Taken { case all, pause, end }

    /// Handles bytes of the body.
    func take(_ bytes: UnsafeRawBufferPointer) -> Taken {
        lastActivity = state.now
        if let head = receiving.provisionalHead, receiving.answer == nil {
            do throws(HeadParser.Refused) {
                guard try settle(head) else { return .end }
            } catch {
                return end(error.fault)
            }
        }
        switch receiving.answer?.judgement.body {
        case .keep: return keep(bytes)
        case .discard(let limit): return discard(bytes, limit)
        case .skip: return skip(bytes)
        case .stop, nil: return .end
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) -> Taken {
        if let maximum = exchange.request.maximumBytes, sink.length + Int64(bytes.count) > maximum {
            return end(.tooLarge)
        }
        switch exchange.fileWork {
        case .wanted, .opening: return pause(.file)
        case .none, .syncing: break
        }
        if let again = receiving.throttle.wait(at: state.now) { return pause(.until(again)) }
        if sink.isInParts { return keepParts(bytes) }
        if exceedsRecord(by: bytes.count) { return pause(.record) }
        guard sink.reserve() else {
            state.awaitingBuffer.add(exchange, for: exchange.request.pool)
            return pause(.buffer)
        }
        if sink.file != nil, !exchange.room.take(bytes.count) { return end(.disk(errno: ENOSPC)) }
        let wasBehind = sink.isBehind
        switch sink.write(bytes) {
        case .taken:
            count(bytes.count)
            if sink.isBehind, !wasBehind { callForAttention() }
            return .all
        case .needsFile:
            // The bytes in memory go to the file first.
            guard exchange.room.take(sink.bytesInMemory) else { return end(.disk(errno: ENOSPC)) }
            want(prefix: 0)
            return pause(.file)
        case .full:
            count(bytes.count)
            cut = .enough
            return .end
        case .failed(let error): return end(.disk(errno: error.errno))
        }
    }

    private func keepParts(_ bytes: UnsafeRawBufferPointer) -> Taken {
        guard sink.mayTakePart(unrecorded: sink.length - receiving.recorded) else { return pause(.record) }
        let expected = meter.expected.load(ordering: .relaxed)
        for part in sink.takeParts(bytes, ofContent: expected < 0 ? nil : expected) {
            exchange.report(.part(exchange.id, part))
        }
        count(bytes.count)
        return .all
    }

    /// Whether `count` further bytes would exceed the limit of unrecorded bytes.
    private func exceedsRecord(by count: Int) -> Bool {
        guard let maximum = exchange.maximumUnrecorded else { return false }
        return sink.length + Int64(count) - receiving.recorded > maximum
    }

    private func discard(_ bytes: UnsafeRawBufferPointer, _ limit: Int) -> Taken {
        let room = limit - receiving.side.count
        receiving.side.append(contentsOf: bytes.prefix(room))
        count(bytes.count)
        guard bytes.count > room else { return .all }
        receiving.isSideTruncated = true
        cut = .enough
        return .end
    }

    /// Ends the exchange at once if a longer body is announced than is worth reading.
    private func skip(announced: Int64?) -> Bool {
        if isBodySent, exchange.request.method != "HEAD", announced ?? 0 > Self.longestSkip {
            cut = .enough
            return false
        }
        receiving.skipsSince = state.now
        // The loop learns the new deadline.
        callForAttention()
        return true
    }

    private func skip(_ bytes: UnsafeRawBufferPointer) -> Taken {
        count(bytes.count)
        guard receiving.count > Self.longestSkip else { return .all }
        cut = .enough
        return .end
    }

    private func count(_ count: Int) {
        receiving.throttle.took(count)
        receiving.count += Int64(count)
        meter.received.store(receiving.count, ordering: .relaxed)
        meter.length.store(sink.length, ordering: .relaxed)
    }

    private func want(prefix: Int64) {
        exchange.fileWork = .wanted(prefix: prefix)
        callForAttention()
    }

    private func pause(_ pause: Exchange.Receiving.Pause) -> Taken {
        receiving.pause = pause
        callForAttention()
        return .pause
    }

    private func end(_ fault: TransferFault) -> Bool {
        cut = .fault(fault)
        return false
    }

    private func end(_ fault: TransferFault) -> Taken {
        cut = .fault(fault)
        return .end
    }

    // MARK: Bytes of the request

    enum Given { case bytes(Int), pause, failed }

    /// Passes bytes of the request's body to libcurl.
    func give(_ buffer: UnsafeMutableRawBufferPointer) -> Given {
        lastActivity = state.now
        guard let body = sending.body else { return .bytes(0) }
        if let again = sending.throttle.wait(at: state.now) { return pauseSending(.until(again)) }
        do throws(TransferFault) {
            guard let count = try body.read(into: buffer, now: state.now) else { return pauseSending(.body) }
            sending.throttle.took(count)
            if body.position == body.length { sending.endedAt = state.now }
            meter.sent.store(body.position, ordering: .relaxed)
            return .bytes(count)
        } catch {
            cut = .fault(error)
            return .failed
        }
    }

    private func pauseSending(_ pause: Exchange.Sending.Pause) -> Given {
        sending.pause = pause
        callForAttention()
        return .pause
    }
}

extension ExchangeRequest {
    /// Whether libcurl may answer this head itself. It discards the body then, so the first body byte settles the head.
    fileprivate func isChallenge(_ head: ResponseHead) -> Bool {
        head.status == 401 && usesDigest || head.status == 407 && proxyUsesDigest
    }

    var mayBeChallenged: Bool { usesDigest || proxyUsesDigest }

    private var usesDigest: Bool { httpAuthentication?.isDigest ?? false }

    private var proxyUsesDigest: Bool { proxy?.authentication?.isDigest ?? false }
}
