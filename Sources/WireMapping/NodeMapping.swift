package import Core
package import Wire

extension Wire.Node {
    package init(_ record: NodeRecord, at now: Timestamp) {
        self.init()
        let profile = record.profile
        id = record.id
        state = !record.isAlive ? .silent : record.isDraining ? .draining : .active
        roles = profile.roles.map { Wire.NodeRole(rawValue: $0) }
        version = profile.version
        url = profile.url
        startedAt = profile.startedAt.rfc3339
        heartbeatAt = (now - record.silence).rfc3339
        transfersRunning = profile.transfersRunning
        maximumTransfers = profile.maximumTransfers
        load = profile.load
    }
}
