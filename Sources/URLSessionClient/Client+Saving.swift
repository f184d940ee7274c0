public import Wire

/// Saving contents as files of a folder, for programs that receive launches.
extension Client {
    /// Saves the content of a successful download in a folder, named by the rule of `docs/webhooks.md`, "Names of saved
    /// files". A repeated call for the same event finds the file and changes nothing.
    ///
    /// - Parameters:
    ///   - event: The event. Only `task.didFinishDownloading` has a content.
    ///   - folder: The folder, which must exist.
    /// - Returns: The path of the file; `nil` for another event, for an error page, and if the content is no longer
    ///   kept.
    @discardableResult
    public func saveContent(of event: Event, in folder: String) async throws -> String? {
        guard event.type == .taskDidFinishDownloading, let number = event.taskIdentifier else { return nil }
        let task = try await task(number, in: event.sessionIdentifier)
        guard task.outcome == .succeeded, let content = task.content else { return nil }
        let details: EventData.DidFinishDownloading = try event.data.read()
        let given = [details.suggestedFilename, event.clientTaskId].compactMap { $0.flatMap { SavedName($0) } }
        let name = given.first ?? .task(number)
        let start = folder.hasSuffix("/") ? folder : folder + "/"
        var place = 1
        while true {
            let path = start + name.numbered(place)
            if Self.file(path, has: content) { return path }
            do {
                try await self.content(ofTask: number, in: event.sessionIdentifier, to: path)
                return path
            } catch ClientError.file(_, LocalFile.alreadyExists) {
                place += 1
            }
        }
    }
}
