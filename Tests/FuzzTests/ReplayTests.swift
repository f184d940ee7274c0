import Foundation
import Testing

/// Replays the corpora of `make fuzz`, among them each input that once broke a rule.
@Suite struct ReplayTests {
    private static let corpora = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Fuzz")

    @Test(arguments: parsers.map(\.name))
    func `No parser breaks a rule`(_ name: String) throws {
        let check = try #require(parsers.first { $0.name == name }).check
        let files = try FileManager.default.contentsOfDirectory(
            at: Self.corpora.appending(path: name), includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        for file in files {
            #expect(throws: Never.self, "\(file.lastPathComponent)") { try check(Array(Data(contentsOf: file))) }
        }
    }
}
