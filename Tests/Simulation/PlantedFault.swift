import CSimulation
import SQL
import Store

/// Faults that a run plants, to prove that it finds them: in the calls of the C library, or in the database.
enum PlantedFault: String, CaseIterable {
    case lostWakeup, lostTimer, lostEvent
    case unsyncedFile, unsyncedFolder, unsyncedCommit, misplacedWrite, shortWrite, keptFile, forgottenMove
    case forgottenRefund, keptStoredBytes, keptBody, miscountedLane, emptiedLane, miscountedSuccess
    case miscountedSuspension, repeatedNumber
    case droppedEvent, droppedEnd, swappedEvents, keptEvents, wrongLength, keptContent, expiredContent
    case lateRetry, lostRetry, lostBegin, lostAnswer, forgottenQuestion, secondLaunch, unfinishedEnd
    case keptCacheBytes, strandedFollower, forgottenUpload, keptUpload, droppedSetFile, keptSetVersion
    case skippedFence, skippedTurn, undoneCommit, misreportedCommit, keptClaim

    /// The kinds of runs that can find it; none for most.
    var needed: [Plan.Fault] {
        switch self {
        case .skippedFence, .skippedTurn, .undoneCommit, .misreportedCommit, .keptClaim: [.nodes, .losses, .pauses]
        default: []
        }
    }

    private enum Place {
        case calls(csim_planted_fault)
        case database(StaticString)
    }

    private var place: Place {
        switch self {
        case .lostWakeup: .calls(csim_lose_wakeup)
        case .lostTimer: .calls(csim_lose_timer)
        case .lostEvent: .calls(csim_lose_event)
        case .unsyncedFile: .calls(csim_skip_file_sync)
        case .unsyncedFolder: .calls(csim_skip_folder_sync)
        case .unsyncedCommit: .calls(csim_skip_commit_sync)
        case .misplacedWrite: .calls(csim_misplace_write)
        case .shortWrite: .calls(csim_shorten_write)
        case .keptFile: .calls(csim_skip_removal)
        case .forgottenMove: .calls(csim_skip_move)
        case .skippedFence: .calls(csim_skip_fence)
        case .skippedTurn: .calls(csim_skip_turn)
        case .undoneCommit: .calls(csim_undo_commit)
        case .misreportedCommit: .calls(csim_misreport_commit)
        case .forgottenRefund, .keptStoredBytes, .keptBody, .miscountedLane, .emptiedLane, .miscountedSuccess,
            .miscountedSuspension, .repeatedNumber:
            .database(inCounters)
        case .droppedEvent, .droppedEnd, .swappedEvents, .keptEvents, .wrongLength, .keptContent, .expiredContent:
            .database(inEventsAndContents)
        case .lateRetry, .lostRetry, .lostBegin, .lostAnswer, .forgottenQuestion, .secondLaunch, .unfinishedEnd,
            .keptClaim:
            .database(inStates)
        case .keptCacheBytes, .strandedFollower, .forgottenUpload, .keptUpload, .droppedSetFile, .keptSetVersion:
            .database(inCachesBucketsAndSets)
        }
    }

    private var inCounters: StaticString {
        switch self {
        case .forgottenRefund:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF unfinished_tasks ON app \
            WHEN new.unfinished_tasks < old.unfinished_tasks AND new.revision % 5 = 0 BEGIN \
            UPDATE app SET unfinished_tasks = old.unfinished_tasks WHERE id = new.id; END
            """
        case .keptStoredBytes:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF stored_bytes ON app \
            WHEN new.stored_bytes < old.stored_bytes AND old.stored_bytes % 3 = 0 BEGIN \
            UPDATE app SET stored_bytes = old.stored_bytes WHERE id = new.id; END
            """
        case .keptBody:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF uses ON body WHEN new.uses < old.uses BEGIN \
            UPDATE body SET uses = old.uses WHERE id = new.id; END
            """
        case .miscountedLane:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF stage ON live \
            WHEN old.stage = 'retryWait' AND new.stage = 'queued' AND new.task % 4 = 0 BEGIN \
            UPDATE lane SET queued = queued + 1 WHERE id = new.lane; END
            """
        case .emptiedLane:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF queued ON lane WHEN new.queued > 2 BEGIN \
            UPDATE lane SET queued = 0 WHERE id = new.id; END
            """
        case .miscountedSuccess:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF succeeded ON session \
            WHEN new.succeeded > old.succeeded AND new.succeeded % 4 = 0 BEGIN \
            UPDATE session SET succeeded = new.succeeded - 1 WHERE id = new.id; END
            """
        case .miscountedSuspension:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF suspended ON session \
            WHEN new.suspended < old.suspended AND new.running > old.running BEGIN \
            UPDATE session SET suspended = old.suspended WHERE id = new.id; END
            """
        default:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF next_task ON session WHEN new.next_task = 4 BEGIN \
            UPDATE session SET next_task = 3 WHERE id = new.id; END
            """
        }
    }

    private var inEventsAndContents: StaticString {
        switch self {
        case .droppedEvent:
            """
            CREATE TRIGGER IF NOT EXISTS planted BEFORE INSERT ON event WHEN new.kind = 'task.didResumeAtOffset' BEGIN \
            SELECT raise(IGNORE); END
            """
        case .droppedEnd:
            """
            CREATE TRIGGER IF NOT EXISTS planted BEFORE INSERT ON event \
            WHEN new.kind = 'task.didFinishCollectingMetrics' AND new.task % 7 = 0 BEGIN SELECT raise(IGNORE); END
            """
        case .swappedEvents:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER INSERT ON event \
            WHEN new.kind = 'task.didComplete' AND new.task % 5 = 0 BEGIN \
            UPDATE event SET seq = -1 WHERE session = new.session AND seq = new.seq; \
            UPDATE event SET seq = new.seq WHERE session = new.session AND seq = new.seq - 1; \
            UPDATE event SET seq = new.seq - 1 WHERE session = new.session AND seq = -1; END
            """
        case .keptEvents:
            """
            CREATE TRIGGER IF NOT EXISTS planted BEFORE DELETE ON event \
            WHEN old.kind = 'task.didReceiveChallenge' BEGIN SELECT raise(IGNORE); END
            """
        case .wrongLength:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER INSERT ON content WHEN new.file IS NOT NULL BEGIN \
            UPDATE content SET digest = replace(digest, 'a', 'b') WHERE task = new.task; END
            """
        case .keptContent:
            """
            CREATE TRIGGER IF NOT EXISTS planted BEFORE DELETE ON content WHEN old.task % 6 = 0 BEGIN \
            SELECT raise(IGNORE); END
            """
        default:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER INSERT ON content WHEN new.task % 6 = 0 BEGIN \
            UPDATE content SET expired = 1 WHERE task = new.task; END
            """
        }
    }

    private var inStates: StaticString {
        switch self {
        case .lateRetry:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF stage ON live \
            WHEN new.stage = 'waitingForConnectivity' BEGIN \
            UPDATE live SET stage = 'suspended' WHERE task = new.task; END
            """
        case .lostRetry:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF due_at ON live \
            WHEN new.stage = 'retryWait' AND new.task % 3 = 0 BEGIN \
            UPDATE live SET due_at = NULL WHERE task = new.task; END
            """
        case .lostBegin:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF stage ON live \
            WHEN old.stage = 'delayed' AND new.stage = 'queued' BEGIN \
            UPDATE live SET stage = 'delayed', due_at = NULL WHERE task = new.task; END
            """
        case .lostAnswer:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF stage ON live \
            WHEN old.stage = 'awaitingAnswer' AND new.stage = 'queued' AND new.task % 3 = 0 BEGIN \
            UPDATE live SET stage = 'awaitingAnswer', question = old.question WHERE task = new.task; END
            """
        case .forgottenQuestion:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF stage ON live WHEN new.stage = 'awaitingAnswer' BEGIN \
            UPDATE live SET question = NULL WHERE task = new.task; END
            """
        case .keptClaim:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF node ON live \
            WHEN old.node IS NOT NULL AND new.node IS NULL BEGIN \
            UPDATE live SET node = old.node WHERE task = new.task; END
            """
        case .secondLaunch:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF open_launch ON session \
            WHEN new.open_launch % 3 = 0 BEGIN UPDATE session SET open_launch = NULL WHERE id = new.id; END
            """
        default:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF state ON task \
            WHEN new.state = 'completed' AND new.outcome = 'cancelled' BEGIN \
            UPDATE task SET outcome = 'failed' WHERE id = new.id; END
            """
        }
    }

    private var inCachesBucketsAndSets: StaticString {
        switch self {
        case .keptCacheBytes:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF bytes ON cache \
            WHEN new.bytes < old.bytes AND new.app > 0 BEGIN \
            UPDATE cache SET bytes = old.bytes WHERE app = new.app; END
            """
        case .strandedFollower:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF stage ON live \
            WHEN old.stage = 'following' AND new.stage = 'queued' AND new.task % 3 = 0 BEGIN \
            UPDATE live SET stage = 'following' WHERE task = new.task; END
            """
        case .forgottenUpload:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER INSERT ON bucket_upload BEGIN \
            DELETE FROM bucket_upload WHERE id = new.id; END
            """
        case .keptUpload:
            """
            CREATE TRIGGER IF NOT EXISTS planted BEFORE DELETE ON bucket_upload WHEN old.id % 3 = 0 BEGIN \
            SELECT raise(IGNORE); END
            """
        case .droppedSetFile:
            """
            CREATE TRIGGER IF NOT EXISTS planted BEFORE INSERT ON set_file WHEN new.path = 'f3' BEGIN \
            SELECT raise(IGNORE); END
            """
        default:
            """
            CREATE TRIGGER IF NOT EXISTS planted BEFORE DELETE ON set_version WHEN old.id % 3 = 0 BEGIN \
            SELECT raise(IGNORE); END
            """
        }
    }

    /// Plants it into the calls of the C library.
    func plant() { if case .calls(let fault) = place { csim_plant(fault) } }

    /// Plants it into the database.
    func plant(in store: Store) async throws {
        guard case .database(let trigger) = place else { return }
        try await store.database.write { db in try db.execute(trigger) }
    }
}
