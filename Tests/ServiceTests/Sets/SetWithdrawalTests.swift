import Base
import Core
import Glibc
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// Versions that a destination may show although they are not published.
struct SetWithdrawalTests {
    @Test func `A failed version that readers may have seen gives way to the current one`() async throws {
        try await ServiceStage.run { stage in
            for name in ["v1", "v2"] { stage.origin.serve("/\(name)", .text(name)) }
            let service = stage.service
            let set = try await stage.setOnDisk()
            let (current, versions) = ("root/m/current", "root/m/.versions")
            func shown() -> [UInt8]? { readFile(stage.folder.file("\(current)/f")) }
            try await stage.version("v1", of: set)
            try await eventually("v1 is shown") { shown() == Array("v1".utf8) }
            // A link does not replace a folder with entries.
            #expect(unlink(stage.folder.file(current)) == 0)
            stage.folder.makeFolder("\(current)/x")
            let version = try await stage.version("v2", of: set)
            try await eventually("v2 may be shown") {
                try await service.version("v2", of: set.id).mayBeShown
            }
            service.outlet.handle(
                try await service.store.sets.handle(.failed, version, at: service.clock.now).aftermath)
            #expect(rmdir(stage.folder.file("\(current)/x")) == 0 && rmdir(stage.folder.file(current)) == 0)
            // The service may have tried again in between.
            #expect(symlink(".versions/v2", stage.folder.file(current)) == 0 || errno == EEXIST)
            try await eventually("v1 is shown again", within: .seconds(30)) {
                shown() == Array("v1".utf8) && fileLength(stage.folder.file("\(versions)/v2/f")) == nil
            }
        }
    }
}
