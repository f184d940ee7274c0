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

    /// Whether another attempt may mend the failure, as far as the retry policy allows one.
    var mayRetry: Bool {
        switch result.outcome {
        case .stopped: return false
        case .failed(let fault):
            let meaning = FaultMeaning.of(fault, curlCode: result.curlCode, message: "", url: "")
            switch meaning.fault {
            case .transport, .nameDoesNotExist: return true
            default: return false
            }
        case .complete:
            guard let head = result.head else { return false }
            return transfer.configuration.retryPolicy.retries(status: head.status)
        }
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
