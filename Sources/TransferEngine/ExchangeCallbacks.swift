import Base
import CCurl
import Core
import Glibc
import Synchronization

/// What libcurl's callbacks bring to an exchange, on its loop's thread, inside a call of the library.
extension Exchange {
    /// The request is about to be written. False where the peer may not be reached.
    func beforeRequest(remote: String, port: UInt16) -> Bool {
        guard let address = IPAddress(remote), mayReach(address, port) else { return false }
        isRequestSent = true
        lastActivity = state.now
        meter.enter(.sending)
        callForAttention()
        return true
    }

    /// A socket is wanted. False where the address may not be reached.
    func mayConnect(to address: IPAddress, port: UInt16) -> Bool {
        guard mayReach(address, port) else { return false }
        if meter.phase.load(ordering: .relaxed) == ExchangeProgress.Phase.resolving.rawValue {
            meter.enter(.connecting)
        }
        return true
    }

    /// A socket of this exchange is not to be watched any more.
    func socketIsGone() {
        guard case .running = stage, !isRequestSent else { return }
        lostSocket = true
        callForAttention()
    }

    /// Lets libcurl go on with the next address of the host.
    ///
    /// Driven by sockets it would wait for a timer: 7.88 closes the socket of an address that refused and asks for no
    /// other event. Ending a pause is what makes it look at a transfer at once.
    func tryNextAddress() {
        lostSocket = false
        guard let easy, !isRequestSent else { return }
        curl_easy_pause(easy.raw, CURLPAUSE_SEND)
        curl_easy_pause(easy.raw, CURLPAUSE_CONT)
    }

    /// One header line. False ends the exchange.
    func takeHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        lastActivity = state.now
        if isTunnelling { return takeTunnelHeader(line) }
        addLateCookies()
        do throws(HeadParser.Refused) {
            switch try parser.take(line) {
            case nil: return true
            case .informational(let head):
                report(.informational(id, head))
                return true
            case .final(let head):
                if isChallenge(head) {
                    provisionalHead = head
                    return true
                }
                return try settle(head)
            }
        } catch {
            fault = error.fault
            return false
        }
    }

    /// What comes before the request is sent answers the request for a tunnel.
    private var isTunnelling: Bool { wantsTunnel && !isRequestSent }

    /// One header line of the proxy's answer. libcurl judges it; its challenge is for us.
    private func takeTunnelHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        do throws(HeadParser.Refused) {
            if case .final(let head)? = try tunnelParser.take(line) { tunnelHead = head }
            return true
        } catch {
            fault = error.fault
            return false
        }
    }

    /// The request is sent, and this line comes before any that sets a cookie.
    func addLateCookies() {
        // A digest challenge is answered with another request, which shall not have them either.
        guard !lateCookies.isEmpty, !mayBeChallenged else { return }
        easy?.add(cookies: lateCookies)
        lateCookies = []
    }

    private var mayBeChallenged: Bool {
        if case .digest = request.httpAuthentication { return true }
        if case .digest = request.proxy?.authentication { return true }
        return false
    }

    /// Whether libcurl may answer this head itself; it drops the body then, so the first byte of one settles it.
    func isChallenge(_ head: ResponseHead) -> Bool {
        if case .digest = request.httpAuthentication, head.status == 401 { return true }
        if case .digest = request.proxy?.authentication, head.status == 407 { return true }
        return false
    }

    /// A final head without body that was held back is the answer after all.
    func settleAtEnd() {
        guard let head = provisionalHead, self.head == nil else { return }
        do throws(HeadParser.Refused) { _ = try settle(head) } catch { fault = error.fault }
    }

    /// Judges the final head. False ends the exchange.
    func settle(_ head: ResponseHead) throws(HeadParser.Refused) -> Bool {
        provisionalHead = nil
        let announced = try head.contentLength()
        let isChunked = try head.isChunked()
        self.head = head
        announcedLength = announced
        meter.enter(.receiving)
        noteConnection()
        isLengthVerified =
            announced != nil || isChunked || head.httpVersion == "2" || request.method == "HEAD" || head.status == 204
            || head.status == 304
        // Two framings at once: what comes after this answer cannot be trusted.
        if announced != nil && isChunked {
            hasTwoFramings = true
            easy?.set(CURLOPT_FORBID_REUSE, 1)
        }
        let judgement = request.judge(head)
        self.judgement = judgement
        report(.head(id, head, judgement))
        switch judgement.body {
        case .keep(let offset): return keep(at: offset, announced: isChunked ? nil : announced)
        case .discard: return true
        case .stop: return false
        }
    }

    func keep(at offset: Int64, announced: Int64?) -> Bool {
        guard (0...sink.length).contains(offset) else {
            fault = .prefixMissing
            return false
        }
        let length = announced.map { $0.addingSaturated(offset) }
        if request.method != "HEAD" {
            meter.expected.store(length ?? -1, ordering: .relaxed)
            if let length, let maximum = request.maximumBytes, length > maximum {
                fault = .tooLarge
                return false
            }
        }
        let missing = length.map { $0 - sink.length } ?? 0
        if offset != sink.length {
            wantedPrefix = offset
            forgetRecord(beyond: offset)
            sink.restart()
        } else if sink.file == nil, length.map(sink.isLarge) ?? false, request.method != "HEAD" {
            wantedPrefix = 0
        }
        if wantedPrefix != nil { callForAttention() }
        meter.length.store(offset, ordering: .relaxed)
        // What is too much for the disk is left where it is, rather than fetched as far as it goes.
        if request.method != "HEAD", length.map(sink.isLarge) ?? false, !room.fits(missing) {
            fault = .disk(errno: ENOSPC)
            return false
        }
        return true
    }

    enum Taken { case all, pause, end }

    /// Bytes of the body.
    func take(_ bytes: UnsafeRawBufferPointer) -> Taken {
        lastActivity = state.now
        if let head = provisionalHead, self.head == nil {
            do throws(HeadParser.Refused) {
                guard try settle(head) else { return .end }
            } catch {
                fault = error.fault
                return .end
            }
        }
        switch judgement?.body {
        case .keep: return keep(bytes)
        case .discard(let limit): return discard(bytes, limit)
        case .stop, nil: return .end
        }
    }

    func keep(_ bytes: UnsafeRawBufferPointer) -> Taken {
        if let maximum = request.maximumBytes, sink.length + Int64(bytes.count) > maximum {
            fault = .tooLarge
            return .end
        }
        if isOpening || wantedPrefix != nil { return pauseForFile() }
        if let again = receiving.wait(at: state.now) {
            receivesAgain = again
            isReceivingPaused = true
            callForAttention()
            return .pause
        }
        if exceedsRecord(by: bytes.count) {
            waitsForRecord = true
            isReceivingPaused = true
            callForAttention()
            return .pause
        }
        if sink.file != nil, !room.take(bytes.count) {
            fault = .disk(errno: ENOSPC)
            return .end
        }
        let wasSynced = sink.unsynced == 0
        switch sink.write(bytes) {
        case .taken:
            count(bytes.count)
            if sink.unsynced > 0, wasSynced || wantsSync { callForAttention() }
            return .all
        case .needsFile:
            // The bytes in memory go into the file first.
            guard room.take(sink.bytesInMemory) else {
                fault = .disk(errno: ENOSPC)
                return .end
            }
            wantedPrefix = 0
            return pauseForFile()
        case .full:
            count(bytes.count)
            isEnough = true
            return .end
        case .failed(let error):
            fault = .disk(errno: error.errno)
            return .end
        }
    }

    func pauseForFile() -> Taken {
        waitsForFile = true
        isReceivingPaused = true
        callForAttention()
        return .pause
    }

    func discard(_ bytes: UnsafeRawBufferPointer, _ limit: Int) -> Taken {
        let room = limit - side.count
        side.append(contentsOf: bytes.prefix(room))
        count(bytes.count)
        guard bytes.count > room else { return .all }
        isSideTruncated = true
        isEnough = true
        return .end
    }

    func count(_ count: Int) {
        receiving.took(count)
        bytesReceived += Int64(count)
        meter.received.store(bytesReceived, ordering: .relaxed)
        meter.length.store(sink.length, ordering: .relaxed)
    }

    enum Given { case bytes(Int), pause, failed }

    /// Bytes of our body for libcurl.
    func give(_ buffer: UnsafeMutableRawBufferPointer) -> Given {
        lastActivity = state.now
        guard let body else { return .bytes(0) }
        if let again = sending.wait(at: state.now) {
            sendsAgain = again
            isSendingPaused = true
            callForAttention()
            return .pause
        }
        do throws(DiskError) {
            let count = try body.read(into: buffer)
            sending.took(count)
            if body.position == body.length { bodySentAt = state.now }
            meter.sent.store(body.position, ordering: .relaxed)
            return .bytes(count)
        } catch {
            fault = .bodySource(errno: error.errno)
            return .failed
        }
    }

    func setLimit(_ limit: Int64?) {
        receiving.set(limit, at: state.now)
        sending.set(limit, at: state.now)
        // Both ask again.
        if receivesAgain != nil { receivesAgain = state.now }
        if sendsAgain != nil { sendsAgain = state.now }
    }

    /// The partial file is there.
    func fileIsReady() { waitsForFile = false }

    /// Lets libcurl go on where nothing holds it back any more. A code other than `CURLE_OK` ended the exchange.
    func resumeIfDue() -> CURLcode {
        guard let easy, case .running = stage else { return CURLE_OK }
        if (receivesAgain ?? .max) <= state.now { receivesAgain = nil }
        if (sendsAgain ?? .max) <= state.now { sendsAgain = nil }
        let receivesNow = isReceivingPaused && !waitsForFile && !waitsForRecord && receivesAgain == nil
        let sendsNow = isSendingPaused && sendsAgain == nil
        guard receivesNow || sendsNow else { return CURLE_OK }
        if receivesNow { isReceivingPaused = false }
        if sendsNow { isSendingPaused = false }
        lastActivity = state.now
        return curl_easy_pause(
            easy.raw, (isReceivingPaused ? CURLPAUSE_RECV : 0) | (isSendingPaused ? CURLPAUSE_SEND : 0))
    }

    /// Whether a limit of bytes a second lets libcurl go on now.
    var mayGoOn: Bool {
        guard case .running = stage else { return false }
        return min(receivesAgain ?? .max, sendsAgain ?? .max) <= state.now
    }

    /// What can only be asked while the connection is in use.
    func noteConnection() {
        guard url.isSecure, metrics.tlsVersion == nil, let session = easy?.tlsSession,
            let facts = Curl.tlsFacts(of: session)
        else { return }
        metrics.tlsVersion = facts.version
        metrics.tlsCipher = facts.cipher
        // A session of TLS that is taken up again does not ask again.
        if facts.asksForCertificate { pool?.certificateAskers.insert(url.hostAndPort) }
        asksForCertificate = pool?.certificateAskers.contains(url.hostAndPort) ?? false
    }
}
