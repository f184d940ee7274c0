import Core
import TransferEngine

extension Judge {
    /// The engine's measurements, completed with facts of the task.
    ///
    /// - Parameter offset: The first byte of the segment.
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
        // Cookies are secrets, and kept only in the session's store.
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
