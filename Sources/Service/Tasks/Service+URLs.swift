import Core
import TransferEngine

extension Service {
    /// What is wrong with a URL that a task should transfer, for a person; nil when it can be asked for.
    ///
    /// Says nothing about its address: that is judged when the task runs.
    package static func faultOfURL(_ text: String) -> String? {
        do throws(BadURL) {
            _ = try ParsedURL(text)
            return nil
        } catch {
            return error.explanation
        }
    }
}
