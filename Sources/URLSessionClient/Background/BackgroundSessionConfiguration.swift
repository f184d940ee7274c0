public import Foundation
public import Wire

/// The configuration of a ``BackgroundSession``: Apple's properties, the service's own, and the service itself.
///
///     let configuration = BackgroundSessionConfiguration.background(withIdentifier: "com.example.downloads")
///     configuration.isDiscretionary = true
///     configuration.timeoutIntervalForResource = 24 * 60 * 60
///
/// It has every member of ``Wire/SessionConfiguration`` under its own name: `isDiscretionary`,
/// `sessionSendsLaunchEvents`, `timeoutIntervalForRequest`, `allowsCellularAccess`, `retryPolicy` and the rest. The
/// service freezes them when the session is created. A session object with other values becomes invalid with
/// `configuration-mismatch`; one with all defaults accepts the existing session.
@dynamicMemberLookup
public final class BackgroundSessionConfiguration {
    /// The name of the session, unique in the app.
    public let identifier: String?

    /// The members that the service freezes.
    public var values = SessionConfiguration()

    /// The service and the app's key.
    public var client = Client.shared

    /// The folder of finished downloads until the delegate moves them. On the disk of their destination a move is a
    /// rename.
    public var temporaryDirectory = FileManager.default.temporaryDirectory

    private init(identifier: String) { self.identifier = identifier }

    /// Creates the configuration of a background session.
    public static func background(withIdentifier identifier: String) -> BackgroundSessionConfiguration {
        BackgroundSessionConfiguration(identifier: identifier)
    }

    public subscript<Value>(dynamicMember member: WritableKeyPath<SessionConfiguration, Value>) -> Value {
        get { values[keyPath: member] }
        set { values[keyPath: member] = newValue }
    }
}

extension Client {
    /// The default client: the service at `URLSESSION_URL`, else `http://127.0.0.1:8080`, with the key
    /// `URLSESSION_KEY`, else `dev`.
    public static let shared: Client = {
        let environment = ProcessInfo.processInfo.environment
        return Client(
            base: environment["URLSESSION_URL"] ?? "http://127.0.0.1:8080", key: environment["URLSESSION_KEY"] ?? "dev")
    }()
}
