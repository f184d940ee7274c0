import Core
import Store
import TransferEngine

extension Judge {
    /// The disk has no space for the content. The task waits, uncharged, or ends if waiting cannot help.
    mutating func judgeFullDisk(_ error: TaskError) -> Judgement {
        let kept = progress.keptOffset
        if kept == 0, result.length > 0 { progress.diskLosses += 1 }
        let delay = progress.pauseForRoom(since: transfer.task.progress.keptOffset)
        let verdict = DiskPlan.judge(
            total: announcedTotal, kept: kept, reached: result.length, losses: progress.diskLosses,
            largest: largestContent)
        switch verdict {
        case .waits(let needed):
            return .waitForDisk(needed: needed, notBefore: now + delay)
        case .neverFits, .lostTooOften:
            return fail(with: .fullDisk(verdict, failingURL: transfer.request.url.text), keptOffset: kept)
        }
    }

    /// The length of the whole content, if it is known.
    var announcedTotal: Int64? {
        if let segmented = transfer.segmented { return segmented.plan.total }
        guard let head = result.head else { return progress.kept.point?.totalLength }
        guard let length = ContentLength.parse(head.fields).value else { return nil }
        guard case .append(let offset) = verdict else { return length }
        let (total, overflow) = length.addingReportingOverflow(offset)
        return overflow ? .max : total
    }
}
