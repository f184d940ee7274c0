import Base
import Glibc
import Testing

@testable import Service
@testable import Transfers

struct FailureTests {
    @Test func `A request to the closed disk queue gets the error of a stopping service`() {
        guard case .service(.shuttingDown) = Failure(SystemError("queue", errno: ESHUTDOWN)) else {
            Issue.record("another failure")
            return
        }
        guard case .unexpected = Failure(SystemError("open", errno: EIO)) else {
            Issue.record("another failure")
            return
        }
    }
}
