import Base
import Core
import TestSupport
import Testing

@testable import API
@testable import Service

/// Files of versions that clients read.
@Suite struct SetReadingTests {
    @Test func `A version is open until a client has received its file`() async throws {
        try await ServedAPI.run(loops: true) { api async throws in
            let origin = try OriginServer()
            origin.serve("/f", .generated(seed: 1, length: 16 << 20))
            try await api.session()
            _ = try await api.dev.put("/v1/sets/m", [:])
            let file: JSON = ["path": "f", "request": ["url": .string(origin.url("/f"))]]
            let version: JSON = ["session": "s", "version": "1", "files": [file]]
            #expect(try await api.dev.post("/v1/sets/m/versions", version).status == 201)
            try await eventually("it is published") {
                try await api.dev.get("/v1/sets/m/versions/1").json["state"].string == "published"
            }
            let readers = api.service.setReaders
            #expect(readers.held.isEmpty)
            do {
                // The connection has room for a part of the file only.
                let exchange = try await api.dev.begin("GET", "/v1/sets/m/versions/1/files/f")
                try await eventually("it is open") { readers.held.count == 1 }
                try await stays("it is open", for: .milliseconds(300)) { readers.held.count == 1 }
                withExtendedLifetime(exchange) {}
            }
            try await eventually("it is not open any more") { readers.held.isEmpty }
            let range = ("Range", "bytes=100-900099")
            let part = try await api.dev.get("/v1/sets/m/versions/1/files/f", headers: [range])
            #expect(part.status == 206 && part.body == Content.bytes(seed: 1, range: 100..<900_100))
        }
    }
}
