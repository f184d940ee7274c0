import Testing
import Wire

/// The text form of events.
struct EventWordsTests {
    static func event(_ type: Event.Kind, _ data: some JSONWritable, seq: Int64? = 3) -> Event {
        Event {
            ($0.seq, $0.type, $0.taskIdentifier, $0.clientTaskId) = (seq, type, 1, "page")
            $0.data = JSONText(data)
        }
    }

    @Test func `An event is printed with its main facts`() {
        let completed = EventData.DidComplete {
            $0.outcome = .succeeded
            $0.response = TaskResponse { $0.statusCode = 200 }
        }
        #expect(
            "\(Self.event(.taskDidComplete, completed))" == "#3 task.didComplete, task 1 (page): succeeded, status 200")
        let failed = EventData.DidComplete {
            $0.outcome = .failed
            $0.error = TaskError {
                ($0.code, $0.name, $0.localizedDescription) = (-1001, "timedOut", "It took too long.")
            }
        }
        #expect(
            "\(Self.event(.taskDidComplete, failed))"
                == "#3 task.didComplete, task 1 (page): failed, timedOut: It took too long.")
        let written = EventData.DidWriteData { ($0.totalBytesWritten, $0.totalBytesExpectedToWrite) = (5, 10) }
        #expect(
            "\(Self.event(.taskDidWriteData, written, seq: nil))" == "task.didWriteData, task 1 (page): 5 of 10 bytes")
        let challenge = AuthenticationChallenge {
            $0.protectionSpace = ProtectionSpace(
                host: "a.example", port: 443, protocol: "https", realm: "r", authenticationMethod: .basic)
        }
        #expect(
            "\(Self.event(.taskDidReceiveChallenge, challenge))"
                == "#3 task.didReceiveChallenge, task 1 (page): HTTPBasic for a.example:443 (r)")
    }

    @Test func `An unknown event is printed with its known members`() {
        let event = Event { ($0.seq, $0.type) = (4, "session.didShine") }
        #expect("\(event)" == "#4 session.didShine")
        #expect("\(Self.event(.taskDidComplete, JSON.array([])))" == "#3 task.didComplete, task 1 (page)")
    }
}
