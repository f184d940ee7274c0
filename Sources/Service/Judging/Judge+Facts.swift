import Core
import TransferEngine

extension Judge {
    /// The exchange in the shape that apps read.
    func metrics() -> TransactionMetrics {
        var metrics = result.metrics
        metrics.statusCode = result.head?.status
        if case .failed(let fault) = result.outcome {
            metrics.error =
                FaultMeaning.of(fault, curlCode: result.curlCode, message: "", url: "").error.code.name
        }
        metrics.offset = transfer.resuming?.offset ?? transfer.uploadOffset
        return metrics
    }
}

extension TaskResponse {
    init(_ head: ResponseHead, url: ParsedURL) {
        // Cookies are secrets, and kept in the session's store alone.
        var headers = head.fields
        headers.remove("Set-Cookie")
        headers.remove("Set-Cookie2")
        let kept = headers.kept
        let mediaType = kept.fields["Content-Type"].flatMap { MediaType($0)?.essence }
        self.init(
            statusCode: head.status, headers: kept.fields,
            droppedHeaders: kept.droppedNames.isEmpty ? nil : kept.droppedNames, mimeType: mediaType,
            expectedContentLength: ContentLength.parse(head.fields).value,
            suggestedFilename: FileName.suggested(url: url.text, fields: head.fields), url: url.text)
    }
}
