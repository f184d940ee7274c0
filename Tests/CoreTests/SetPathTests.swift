import Formats
import Testing

import struct TestSupport.SeededGenerator

@testable import Core

@Suite struct SetPathTests {
    @Test(arguments: [
        "", "/a", "a/", "a//b", "a/../b", "./a", "a\u{0}", String(repeating: "x", count: 256),
        String(repeating: "a/", count: 64) + "a",
    ])
    func `A path that leaves its folder or has no name is refused`(_ path: String) {
        #expect(TextRule.setPath.violation(in: path) != nil)
        #expect(TextRule.setPath.violation(in: "a/b..c/é") == nil)
    }

    @Test(
        arguments: [
            (["a", "a"], 0, 1), (["b", "a/b", "c", "a"], 3, 1), (["a", "a-", "a-b", "a/b"], 0, 3),
            (["a", "a-", "a-/b"], 1, 2), (["x", "a/b", "a/b/c/d", "a/b!"], 1, 2), (["a!/b", "a/b", "a!", "ab"], 2, 0),
        ] as [([String], Int, Int)])
    func `Equal paths, and a file that is also a folder, collide`(_ paths: [String], _ first: Int, _ second: Int) {
        let found = SetPath.collision(in: paths)
        #expect(found?.0 == first && found?.1 == second)
    }

    @Test func `Names that differ only in case or in their Unicode form do not collide`() {
        #expect(SetPath.collision(in: ["a", "A", "B/c", "b/C", "a-/b"]) == nil)
        #expect(SetPath.collision(in: ["\u{E9}", "e\u{301}", "e"]) == nil)
        #expect(SetPath.collision(in: []) == nil)
    }

    @Test func `The search finds a collision exactly if two paths have one`() {
        var generator = SeededGenerator(state: 7)
        for _ in 0..<500 {
            let paths = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
                (0..<Int.random(in: 1...3, using: &generator)).map { _ in
                    String(
                        (0..<Int.random(in: 1...2, using: &generator)).map { _ in
                            ["a", "-", "z"].randomElement(using: &generator) ?? "a"
                        })
                }.joined(separator: "/")
            }
            let collides = paths.indices.contains { one in
                paths.indices.contains { one != $0 && "\(paths[$0])/".hasPrefix("\(paths[one])/") }
            }
            let found = SetPath.collision(in: paths)
            #expect((found != nil) == collides)
            if let found { #expect(found.0 != found.1 && "\(paths[found.1])/".hasPrefix("\(paths[found.0])/")) }
        }
    }

    @Test func `Paths that begin with each other take linear time`() {
        var sorted = SortedSetPaths()
        for length in 1...4000 { #expect(sorted.add(String(repeating: "a", count: length)) == nil) }
        #expect(sorted.add(String(repeating: "a", count: 4000) + "/b") == String(repeating: "a", count: 4000))
    }
}
