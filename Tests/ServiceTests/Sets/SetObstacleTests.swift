import Core
import Glibc
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// Entries of other programs in the way of a version at its destination.
struct SetObstacleTests {
    enum Obstacle: CaseIterable {
        case file, link, linkOfVersions, currentFolder, currentFile

        func make(in folder: TemporaryFolder) {
            switch self {
            case .file: folder.write([1], to: "root/m")
            case .link: symlink("elsewhere", folder.file("root/m"))
            case .linkOfVersions:
                folder.makeFolder("root/m")
                symlink("elsewhere", folder.file("root/m/.versions"))
            case .currentFolder: folder.makeFolder("root/m/current/x")
            case .currentFile:
                folder.makeFolder("root/m")
                folder.write([1], to: "root/m/current")
            }
        }
    }

    @Test(arguments: Obstacle.allCases)
    func `A version with an obstacle at its destination fails soon, and says why`(_ obstacle: Obstacle) async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/v1", .text("v1"))
            obstacle.make(in: stage.folder)
            let set = try await stage.setOnDisk()
            try await stage.version("v1", of: set)
            let failed = try await eventually("the version has failed", within: .seconds(30)) {
                let version = try await stage.service.version("v1", of: set.id)
                return version.state == .failed ? version : nil
            }
            let detail = failed.failures.first?.detail ?? ""
            #expect(detail.hasPrefix("The destination could not be written: "), "\(failed.failures)")
            #expect(!failed.mayBeShown)
        }
    }

    @Test func `A version whose link cannot be set may be cancelled`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/v1", .text("v1"))
            Obstacle.currentFolder.make(in: stage.folder)
            let (service, set) = (stage.service, try await stage.setOnDisk())
            let version = try await stage.version("v1", of: set)
            try await eventually("the publication was attempted") {
                try await service.store.sets.standing(of: version)?.attempts ?? 0 > 0
            }
            #expect(try await service.cancelVersion(version, ifRevision: nil).state == .cancelled)
        }
    }
}
