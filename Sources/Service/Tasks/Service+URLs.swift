package import Core
package import Notation
import TransferEngine

extension Service {
    /// Parses a URL that somebody should be sent to. Says nothing about its address: that is judged when it is used.
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
