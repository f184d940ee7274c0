/// Performs `body` for each element, with at most `width` in flight. The first error cancels the rest.
package func inLanes<Element: Sendable>(
    _ elements: some Collection<Element>, _ width: Int,
    _ body: @escaping @Sendable (Element) async throws -> Void
) async throws {
    let elements = Array(elements)
    try await withThrowingDiscardingTaskGroup { group in
        for lane in 0..<min(width, elements.count) {
            group.addTask {
                for index in stride(from: lane, to: elements.count, by: width) {
                    try Task.checkCancellation()
                    try await body(elements[index])
                }
            }
        }
    }
}
