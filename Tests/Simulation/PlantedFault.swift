import CSimulation
import SQL
import Store

/// Faults that a run plants, to see whether it finds them: in the calls of the C library, or in the database.
enum PlantedFault: String, CaseIterable {
    case lostWakeup, lostTimer, lostEvent, unsyncedFile, unsyncedFolder, unsyncedCommit, misplacedWrite
    case forgottenRefund, droppedEvent, miscountedLane, lateRetry, secondLaunch, wrongLength, unfinishedEnd

    /// Plants it into the calls of the C library.
    func plant() {
        switch self {
        case .lostWakeup: csim_plant(csim_lose_wakeup)
        case .lostTimer: csim_plant(csim_lose_timer)
        case .lostEvent: csim_plant(csim_lose_event)
        case .unsyncedFile: csim_plant(csim_skip_file_sync)
        case .unsyncedFolder: csim_plant(csim_skip_folder_sync)
        case .unsyncedCommit: csim_plant(csim_skip_commit_sync)
        case .misplacedWrite: csim_plant(csim_misplace_write)
        default: break
        }
    }

    /// What it changes behind the program's back.
    private var trigger: StaticString? {
        switch self {
        case .forgottenRefund:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF unfinished_tasks ON app \
            WHEN new.unfinished_tasks < old.unfinished_tasks AND new.revision % 5 = 0 BEGIN \
            UPDATE app SET unfinished_tasks = old.unfinished_tasks WHERE id = new.id; END
            """
        case .droppedEvent:
            """
            CREATE TRIGGER IF NOT EXISTS planted BEFORE INSERT ON event WHEN new.kind = 'task.didResumeAtOffset' BEGIN \
            SELECT raise(IGNORE); END
            """
        case .miscountedLane:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF stage ON live \
            WHEN old.stage = 'retryWait' AND new.stage = 'queued' AND new.task % 4 = 0 BEGIN \
            UPDATE lane SET queued = queued + 1 WHERE id = new.lane; END
            """
        case .lateRetry:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF stage ON live \
            WHEN new.stage = 'waitingForConnectivity' BEGIN \
            UPDATE live SET stage = 'suspended' WHERE task = new.task; END
            """
        case .secondLaunch:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER INSERT ON launch WHEN new.id % 3 = 0 BEGIN \
            UPDATE session SET open_launch = NULL WHERE id = new.session; END
            """
        case .wrongLength:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER INSERT ON content WHEN new.file IS NOT NULL BEGIN \
            UPDATE content SET digest = replace(digest, 'a', 'b') WHERE task = new.task; END
            """
        case .unfinishedEnd:
            """
            CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF state ON task \
            WHEN new.state = 'completed' AND new.outcome = 'cancelled' BEGIN \
            UPDATE task SET outcome = 'failed' WHERE id = new.id; END
            """
        default: nil
        }
    }

    /// Plants it into the database.
    func plant(in store: Store) async throws {
        guard let trigger else { return }
        try await store.database.write { db in try db.execute(trigger) }
    }
}
