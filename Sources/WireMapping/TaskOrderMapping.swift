package import Core
package import Wire

extension TaskOrder {
    /// An app's order.
    ///
    /// - Parameter traceparent: The request's trace context, stored with the task.
    package init(_ wire: TaskCreation, traceparent: String? = nil) {
        let kind: Core.TaskKind = wire.kind == .upload ? .upload : .download
        let request = Core.TransferRequest(wire.request ?? Wire.TransferRequest(url: ""), kind: kind)
        var specification = TaskSpecification(kind: kind, request: request)
        specification.take(wire.terms)
        specification.traceparent = traceparent
        self.init(
            specification: specification, isSuspended: wire.state == .suspended,
            body: (wire.body ?? wire.request?.body).map(Body.init), resumeData: wire.resumeData)
    }
}

extension TaskOrder.Body {
    package init(_ source: BodySource) {
        switch source {
        case .id(let id): self = .stored(id)
        case .text(let text): self = .bytes(Array(text.utf8), mediaType: "text/plain; charset=utf-8")
        case .bytes(let bytes): self = .bytes(bytes, mediaType: nil)
        case .json(let json): self = .bytes(json.jsonBytes, mediaType: "application/json")
        case .file(let root, let path): self = .file(root: root, path: path)
        case .task(let number): self = .content(ofTask: number)
        case .object(let bucket, let key, let versionId):
            self = .object(ObjectReference(bucket: bucket, key: key, versionId: versionId))
        }
    }
}

extension Core.TransferRequest {
    /// - Parameter kind: The kind of the task, which determines the default method.
    package init(_ wire: Wire.TransferRequest, kind: Core.TaskKind) {
        self.init(
            url: wire.url, method: wire.method ?? (kind == .upload ? "PUT" : "GET"), headers: HTTPFields(wire.headers),
            sensitiveHeaders: wire.sensitiveHeaders)
        cachePolicy = wire.cachePolicy.flatMap { Core.CachePolicy($0) }
        if let bucket = wire.bucket, let key = wire.key {
            object = ObjectReference(bucket: bucket, key: key, versionId: wire.versionId)
        }
    }

    /// The request with the changes of a `PATCH`.
    func applying(_ change: RequestChange) -> Core.TransferRequest {
        var request = self
        if let url = change.url { (request.url, request.object) = (url, nil) }
        if let headers = change.headers { request.headers = HTTPFields(headers) }
        if let names = change.sensitiveHeaders {
            // A stored value stays secret, even if its name is not listed any more.
            let kept = sensitiveHeaders.filter { old in
                request.headers.contains(old) && !names.contains { $0.equalsIgnoringASCIICase(old) }
            }
            request.sensitiveHeaders = (change.headers == nil ? kept : []) + names
        }
        return request
    }
}

extension Wire.TransferRequest {
    /// The client's view of a request, secrets hidden.
    ///
    /// - Parameter body: The stored body that a download's request sends.
    package init(_ core: Core.TransferRequest, body: String? = nil) {
        self.init(
            url: core.object == nil ? core.url : "", method: core.method, headers: StringMap(core.headers),
            sensitiveHeaders: core.sensitiveHeaders, body: body.map(BodySource.id))
        cachePolicy = core.cachePolicy.map { Wire.CachePolicy($0) }
        (bucket, key, versionId) = (core.object?.bucket, core.object?.key, core.object?.versionId)
        self = redacted()
    }
}

extension TaskChanges {
    /// - Parameter task: The current task, whose request changes in part.
    package init(_ wire: TaskChange, of task: TaskRecord) {
        self.init()
        priority = wire.priority
        taskDescription = wire.taskDescription.update
        metadata = wire.metadata.update.map { $0?.dictionary ?? [:] }
        earliestBeginDate = wire.earliestBeginDate.update.map { $0.flatMap { Timestamp(rfc3339: $0) } }
        request = wire.request.map { task.specification.request.applying($0) }
    }
}

extension TaskFilter {
    package init(_ selection: TaskSelection) {
        self.init(
            states: Set(selection.state?.words.compactMap { Core.TaskState($0) } ?? []),
            outcomes: Set(selection.outcome?.words.compactMap { Core.Outcome($0) } ?? []), group: selection.group,
            numbers: selection.taskIdentifiers.map(Set.init))
    }
}
