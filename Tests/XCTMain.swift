import Testing
import XCTest

/// Where the tests begin. SwiftPM writes the same, but to find tests of XCTest it needs the compiler's index of all files,
/// which costs a fifth of the build.
@main
struct Main {
    static func main() async {
        if CommandLine.arguments.contains("swift-testing") { await Testing.__swiftPMEntryPoint() as Never }
        XCTMain([])
    }
}
