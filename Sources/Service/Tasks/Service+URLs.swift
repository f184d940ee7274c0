package import Core
package import Formats
import TransferEngine

extension Service {
    /// Parses the URL of a task or webhook. The egress policy applies only when the URL is used.
    ///
    /// - Throws: A fault at `pointer` for a URL that libcurl's parser rejects.
    @discardableResult
    package static func url(_ text: String, at pointer: String) throws(JSONError) -> ParsedURL {
        do throws(BadURL) {
            return try ParsedURL(text)
        } catch {
            throw .invalid(error.explanation, at: pointer)
        }
    }
}
