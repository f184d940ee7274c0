import Base

/// Grants a limited number of permits; further requests wait in order.
final class Permits: Sendable {
    private let state: Locked<(free: Int, waiting: [CheckedContinuation<Void, Never>])>

    init(_ count: Int) { state = Locked((count, [])) }

    func take() async {
        await withCheckedContinuation { continuation in
            let granted = state.withLock {
                guard $0.free > 0 else {
                    $0.waiting.append(continuation)
                    return false
                }
                $0.free -= 1
                return true
            }
            if granted { continuation.resume() }
        }
    }

    func giveBack() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.waiting.isEmpty else {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}
