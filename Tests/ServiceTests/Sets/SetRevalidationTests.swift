import Core
import Formats
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

/// Files of which the origin confirms that a kept version has them.
struct SetRevalidationTests {
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
