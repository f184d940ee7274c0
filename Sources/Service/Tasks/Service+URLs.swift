package import Core
package import Formats
import TransferEngine

extension Service {
    /// Parses the URL of a task or webhook. Its address is judged when the URL is used.
    ///
    /// - Throws: A fault at `pointer` for one that libcurl's parser does not take.
    @discardableResult
    package static func url(_ text: String, at pointer: String) throws(JSONError) -> ParsedURL {
        do throws(BadURL) {
            return try ParsedURL(text)
        } catch {
            throw .invalid(error.explanation, at: pointer)
        }
    }
}
