import Testing

@testable import Core

@Suite struct TaskSearchTests {
    private func isFound(_ text: String, _ specification: TaskSpecification, file: String? = nil) -> Bool {
        TaskSearch(text).matches(specification) { file }
    }

    private func download(_ url: String) -> TaskSpecification {
        TaskSpecification(kind: .download, request: TransferRequest(url: url, method: "GET"))
    }

    @Test func `Every name of a task is compared, in either case and in part`() {
        var task = download("https://example.com/pub/My%20File.iso")
        task.clientTaskId = "Nightly-17"
        task.taskDescription = "L'Été à Zürich"
        for text in [
            "nightly-17", "LY-1", "l'été", "ZÜRICH", "example.COM/pub", "https://", "my%20file", "my file.iso",
        ] {
            #expect(isFound(text, task), "\(text)")
        }
        #expect(isFound("report", task, file: "Report.pdf"))
        for text in ["nightly-18", "zurich", "report", "ftp"] { #expect(!isFound(text, task), "\(text)") }
    }

    @Test func `Query, fragment and user information of a URL are not compared`() {
        let task = download("https://ann:secret@example.com:8443/a@b/c?token=secret#secret")
        for text in ["secret", "ann", "token", "?", "#", "c?"] { #expect(!isFound(text, task), "\(text)") }
        for text in ["https://example.com:8443/a@b/c", "8443", "@b/c"] { #expect(isFound(text, task), "\(text)") }
        for url in ["https://ann:secret@example.com", "https://ann:secret@example.com?secret"] {
            #expect(!isFound("secret", download(url)))
            #expect(isFound("//example.com", download(url)))
        }
    }

    @Test func `Objects are found by bucket and key`() {
        var task = download("https://s3.example/bucket/prefix/photos/a?b.jpg")
        task.request.object = ObjectReference(bucket: "media", key: "photos/a?b.jpg")
        #expect(isFound("S3://media/photos/a?B", task))
        #expect(!isFound("prefix", task))
    }
}
