import Core
import TransferEngine

extension Judge {
    /// What the engine measured, with what only the task knows.
    ///
    /// - Parameter offset: Where a segment begins.
    func metrics(offset: Int64? = nil) -> TransactionMetrics {
        var metrics = result.metrics
        metrics.statusCode = result.head?.status
        if case .failed(let fault) = result.outcome {
            metrics.error =
                FaultMeaning.of(fault, curlCode: result.curlCode, message: "", url: "").error.code.name
        }
        metrics.offset = offset ?? transfer.attempt.resuming?.offset ?? transfer.uploadOffset
        return metrics
    }
}

extension TaskResponse {
    init(_ head: ResponseHead, url: ParsedURL) {
        // Cookies are secrets, and kept in the session's store alone.
        var fields = head.fields
        fields.remove("Set-Cookie")
        fields.remove("Set-Cookie2")
        let kept = fields.kept
        self.init()
        statusCode = head.status
        headers = kept.fields
        droppedHeaders = kept.droppedNames
        mimeType = kept.fields["Content-Type"].flatMap { MediaType($0)?.essence }
        expectedContentLength = ContentLength.parse(head.fields).value
        suggestedFilename = FileName.suggested(url: url.text, fields: head.fields)
        self.url = url.text
    }
}
