import Base
import Core
import TestSupport
import Testing

/// `current.json` in a bucket, from the time at which a version is about to be shown (docs/sets.md).
@Suite struct SetPointerTests {
    private let store: ObjectStore
    private let scene: Scene

    /// Publishes `v1`, and begins to publish `v2`.
    ///
    /// - Parameter pointer: Holds the request that points to `v2`.
    private init(_ pointer: Gate) async throws {
        store = try ObjectStore()
        scene = try await Scene(
            store.setting(), environment: ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"])
        try await scene.makeSet("m", ["destination": ["bucket": "b", "prefix": "p"]])
        for (index, version) in ["v1", "v2"].enumerated() {
            if index == 1 { store.next(.put, [.well, .well, .hold(pointer)]) }
            scene.origin.serve("/\(version)", .text(version))
            try await scene.create(version, files: [scene.file("f", at: "/\(version)")])
            if index == 0 { try await scene.version(version, is: "published") }
        }
        try await eventually("the pointer is about to be written") { pointer.waiting == 1 }
    }

    private var shown: String? {
        store.objects["p/current.json"].flatMap { try? JSON(parsing: $0.bytes)["version"].string }
    }

    @Test static func `A version that readers may see already is not cancelled`() async throws {
        let gate = Gate()
        let stage = try await SetPointerTests(gate)
        expectProblem(try await stage.scene.api.post("/v1/sets/m/versions/v2/cancel"), 409, "set-version-state")
        gate.open()
        try await stage.scene.version("v2", is: "published")
        #expect(stage.shown == "v2" && stage.store.objects["p/versions/v2/f"] != nil)
    }

    @Test static func `A deleted set shows its current version again, whose files stay`() async throws {
        let gate = Gate()
        let stage = try await SetPointerTests(gate)
        try await stage.scene.service.kill()
        gate.open()
        try await eventually("the store carries out the last request") { stage.shown == "v2" }
        // Nothing is published until the deletion has begun.
        stage.store.refuseAll(403, "AccessDenied")
        try await stage.scene.service.start()
        expect(try await stage.scene.api.delete("/v1/sets/m?keepFiles=1"), 204)
        let errors = { stage.scene.service.errors }
        try await eventually("the deletion has begun") { errors().contains("\"work\":\"set(") }
        stage.store.refuseNothing()
        try await eventually("the other version is gone", within: .seconds(30)) {
            stage.store.objects["p/versions/v2/f"] == nil
        }
        #expect(stage.shown == "v1" && stage.store.objects["p/versions/v1/f"] != nil)
    }
}
