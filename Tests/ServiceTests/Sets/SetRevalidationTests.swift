import Core
import Formats
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// Files of a version that are stored already, or that the origin confirms.
struct SetRevalidationTests {
    @Test func `A small file that a task fetched before the app had a set is not fetched again`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/1", Resource(.bytes(Array("one".utf8))))
            let task = try await stage.run(.download, "GET", stage.origin.url("/1"), in: stage.session())
            let digest = try #require(task.content?.digest.value)
            let set = try await stage.service.putSet("m", of: stage.app, SetChange(), ifRevision: nil).set
            try await stage.version("1", of: set, digest: SetDigest(.sha256, digest))
            try await eventually("it is published") {
                try await stage.service.version("1", of: set.id).state == .published
            }
            #expect(stage.origin.requests("/1").count == 1)
        }
    }

    @Test func `A file without a tag is confirmed by its date`() async throws {
        try await ServiceStage.run { stage in
            let date = "Wed, 01 Jan 2020 00:00:00 GMT"
            var resource = Resource(.bytes(Array("one".utf8)), lastModified: date)
            let service = stage.service
            let set = try await service.putSet("m", of: stage.app, SetChange(), ifRevision: nil).set
            for name in ["1", "2"] {
                stage.origin.serve("/f", resource)
                var order = SetVersionOrder()
                order.name = name
                let draft = try await service.beginVersion(order, of: set, in: stage.session())
                let request = TransferRequest(url: stage.origin.url("/f"), method: "GET")
                try await service.add([SetFile("f", request)], to: draft)
                _ = try await service.finish(draft, fingerprint: [], recording: nil)
                try await eventually("\(name) is published") {
                    try await service.version(name, of: set.id).state == .published
                }
                (resource.status, resource.body) = (304, .bytes([]))
            }
            #expect(try await service.version("2", of: set.id).files.reused == 1)
            #expect(stage.origin.requests("/f").map { $0.fields.contains("If-Modified-Since") } == [false, true])
        }
    }
}
