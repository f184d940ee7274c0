import Base
import Core
import Glibc
import SQL
import TestSupport
import Testing

@testable import Store

/// The place of a node in its store: its holder, and the loss of it.
@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct NodeRowTests {
    private let database: PostgreSQLDatabase
    private let fatal = Locked<String?>(nil)

    init() async throws { database = try await SharedPostgreSQL.database() }

    private func open(_ node: String) throws -> StoreFixture {
        try StoreFixture(
            at: .server(PostgreSQLServer(database.connection), node: node),
            onFatalError: { [fatal] error in
                fatal.withLock { $0 = "\(error)" }
                pthread_exit(nil)
            })
    }

    private func expectEnd(of node: StoreFixture) async throws {
        let isAnswered = Locked(false)
        Task {
            try? await node.store.probe(at: node.now)
            isAnswered.withLock { $0 = true }
        }
        try await eventually("it ends") { fatal.withLock { $0 } != nil }
        #expect(fatal.withLock { $0 } == "another process took this node's place in the store")
        #expect(!isAnswered.withLock { $0 })
    }

    @Test func `Another node is refused while the first lives, and admitted after it has left`() async throws {
        let first = try open("one")
        let error = #expect(throws: SQLError.self) { try open("two") }
        #expect(error?.code == .superseded)
        #expect(error?.message.contains("the node one holds this store") == true)
        try await first.store.probe(at: first.now)
        first.store.close()
        let second = try open("two")
        try await second.store.probe(at: second.now)
        #expect(throws: SQLError.self) { try open("one") }
    }

    @Test func `Another node is admitted when the first node's lease has expired`() async throws {
        let first = try open("one")
        try await database.query("UPDATE node SET lease_until = now() - interval '1 second'")
        let second = try open("two")
        try await expectEnd(of: first)
        try await second.store.probe(at: second.now)
        #expect(try await second.store.nodes.list().map(\.id) == ["two"])
    }

    @Test func `A later process of the same name takes over the row at once`() async throws {
        let first = try open("one")
        let second = try open("one")
        try await expectEnd(of: first)
        try await second.store.probe(at: second.now)
    }

    @Test func `A commit renews the lease`() async throws {
        let node = try open("one")
        try await database.query("UPDATE node SET lease_until = now() + interval '1 second'")
        try await node.store.probe(at: node.now)
        #expect(
            try await database.query("SELECT 1 FROM node WHERE lease_until > now() + interval '10 seconds'").count == 1)
    }
}
