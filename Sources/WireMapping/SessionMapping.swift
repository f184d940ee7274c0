package import Core
package import Wire

extension Wire.Session {
    /// The client's view of a session.
    ///
    /// - Parameters:
    ///   - attendance: The attachment in memory; it takes precedence over a lease.
    ///   - launch: The record of ``SessionRecord/openLaunch``.
    package init(_ record: SessionRecord, attendance: Presence.Kind?, launch: LaunchRecord?, at now: Timestamp) {
        self.init()
        identifier = record.identifier
        incarnation = record.incarnation
        createdAt = record.createdAt.rfc3339
        revision = record.revision
        sessionDescription = record.sessionDescription
        state = State(record.state.phase)
        configuration = Wire.SessionConfiguration(record.configuration)
        taskCounts = Wire.TaskCounts(record.counts)
        countOfBytesReceived = record.countOfBytesReceived
        countOfBytesSent = record.countOfBytesSent
        lastEventSeq = record.lastEventSeq
        acknowledgedSeq = record.acknowledgedSeq
        if let attendance {
            attachment = Attached { $0.kind = attendance.rawValue }
        } else if let held = record.attachment, held.isHeld(at: now), let lease = held.lease {
            attachment = Attached {
                $0.kind = "lease"
                $0.expiresAt = lease.expiresAt.rfc3339
            }
        }
        self.launch = launch.map(Launch.init)
    }
}

extension Wire.TaskCounts {
    package init(_ counts: Core.TaskCounts) {
        self.init()
        suspended = counts.suspended
        running = counts.running
        canceling = counts.canceling
        completed = counts.completed
        outcomes = OutcomeCounts(counts)
    }
}

extension OutcomeCounts {
    package init(_ counts: Core.TaskCounts) {
        self.init()
        succeeded = counts.succeeded
        httpError = counts.httpError
        failed = counts.failed
        cancelled = counts.cancelled
        notModified = counts.notModified
    }
}

extension Wire.Attachment {
    /// The lease of a session; nil without one.
    package init?(_ session: SessionRecord) {
        guard let attachment = session.attachment, let lease = attachment.lease else { return nil }
        self.init()
        epoch = attachment.epoch
        expiresAt = lease.expiresAt.rfc3339
        acknowledgedSeq = session.acknowledgedSeq
        lastSeq = session.lastEventSeq
    }
}

extension Core.Attachment.Event {
    /// The event of a request to attach: a renewal if it names an epoch, otherwise a claim.
    package init(_ request: AttachmentRequest) {
        let ttl = Duration.milliseconds(Int64(request.ttl * 1000))
        if let epoch = request.epoch {
            self = .renew(epoch: epoch, ttl: ttl)
        } else {
            self = .take(ttl: ttl, launchId: request.launchId, takeover: request.takeover)
        }
    }
}
