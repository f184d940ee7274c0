// swift-tools-version: 6.2

import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// The tests spend a fifth of their time in these targets, more than it takes to optimize them (scripts/tests.sh).
let optimized =
    Context.environment["OPTIMIZE_FOR_TESTS"] == nil ? [] : ["Formats", "Base", "SQL", "TestSupport", "simulate"]

/// The settings of a target of the package.
func settings(_ name: String) -> [SwiftSetting] {
    strict + (optimized.contains(name) ? [.unsafeFlags(["-O"])] : [])
}

/// A system library of Debian 12, found through pkg-config where it has a file there.
func system(_ name: String, pkgConfig: String, apt package: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

func library(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings(name))
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

// Ground to roof: a target may depend only on targets above it in this list.
let package = Package(
    name: "urlsessiond",
    // The service is for Linux; this is what the client library needs elsewhere.
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .executable(name: "urlsessiond", targets: ["urlsessiond"]),
        .executable(name: "urlsession", targets: ["urlsession"]),
        .library(name: "URLSessionClient", targets: ["URLSessionClient"]),
    ],
    targets: [
        system("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
        .systemLibrary(name: "CPostgreSQL", providers: [.apt(["libpq-dev"])]),
        system("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        system("CMicroHTTPD", pkgConfig: "libmicrohttpd", apt: "libmicrohttpd-dev"),
        system("CCrypto", pkgConfig: "gnutls", apt: "libmicrohttpd-dev"),
        system("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
        .systemLibrary(name: "CLinux"),
        // The bytes of openapi.yaml.
        .target(name: "COpenAPI", exclude: ["openapi.json"]),
        // The files of the page at / and the reference at /docs.
        .target(name: "CPage", exclude: ["site"]),

        library("Formats", []),
        library("Options", []),
        library("Core", ["Formats"]),
        library("Base", ["CCrypto", "CLinux", "CZlib", "Formats"]),
        library("Wire", ["Formats"]),

        library("SQL", ["Base", "CPostgreSQL", "CSQLite"]),
        library("Files", ["Base", "Formats", "CLinux"]),
        library("TransferEngine", ["Base", "Core", "Files", "Formats", "CCurl", "CLinux"]),
        library("HTTPServer", ["Base", "Formats", "CCrypto", "CMicroHTTPD", "CLinux"]),

        library("Store", ["Base", "Core", "Formats", "SQL"]),
        library("Buckets", ["Base", "Core", "Formats", "TransferEngine"]),
        library("Transfers", ["Base", "Buckets", "Core", "Files", "Formats", "Store", "TransferEngine"]),
        library(
            "Service",
            [
                "Base", "Buckets", "Core", "Files", "Formats", "Store", "TransferEngine", "Transfers", "Wire",
                "WireMapping",
            ]),
        library("WireMapping", ["Core", "Formats", "Wire"]),
        library("Launches", ["Base", "Core", "Wire", "Store", "WireMapping", "TransferEngine"]),
        library(
            "API",
            [
                "Base", "Core", "Formats", "Wire", "WireMapping", "Files", "HTTPServer", "Transfers", "Service",
                "Launches",
                "COpenAPI",
                "CPage",
            ]),

        .executableTarget(
            name: "urlsessiond",
            dependencies: [
                "Base", "Buckets", "Core", "Wire", "SQL", "Files", "TransferEngine", "HTTPServer", "Store",
                "Transfers", "Service",
                "Launches",
                "API", "CLinux", "Options",
            ],
            swiftSettings: strict),
        library("URLSessionClient", ["Wire"]),
        // Stands before libcurl's function of the same name in the command line alone.
        .target(name: "CTrust"),
        .executableTarget(
            name: "urlsession", dependencies: ["URLSessionClient", "Wire", "Options", "CTrust"], swiftSettings: strict,
            // Where FoundationNetworking is a library of its own, it sees only what the program exports.
            linkerSettings: [
                .unsafeFlags(["-Xlinker", "--export-dynamic-symbol=curl_easy_init"], .when(platforms: [.linux]))
            ]),

        // The examples' own packages build them for a reader; here they are built to be tested.
        .executableTarget(
            name: "swift-receiver", dependencies: ["URLSessionClient"],
            path: "examples/swift-receiver/Sources/receiver"),
        .executableTarget(
            name: "first-download", dependencies: ["URLSessionClient"], path: "examples/first-download"),
        .executableTarget(
            name: "background-app", dependencies: ["URLSessionClient"], path: "examples/background-app/Sources/app"),

        // Tests run the programs, which are built with them, and do not wait for them to be compiled.
        library(
            "TestSupport", ["Base", "Buckets", "Core", "Formats", "SQL", "Store", "TransferEngine", "CLinux"]),
        // The service under a seed: see docs/internals/simulation.md.
        .target(name: "CSimulation", path: "Tests/CSimulation"),
        .executableTarget(
            name: "simulate",
            dependencies: [
                "CSimulation", "Service", "Launches", "Transfers", "Store", "SQL", "Files", "TransferEngine", "Buckets",
                "Base", "Core", "Formats",
            ],
            path: "Tests/Simulation", swiftSettings: settings("simulate")),
        tests("CoreTests", ["Core", "Formats", "TestSupport"]),
        tests("BaseTests", ["Base", "Formats"]),
        tests("WireTests", ["Wire"]),
        tests("URLSessionClientTests", ["URLSessionClient", "Wire", "TestSupport"]),
        // Waits for the program to be linked; the client's tests, which take long to compile, do not.
        tests("ToolTests", ["Options", "Wire", "urlsession"]),
        tests("SQLTests", ["SQL", "Base", "TestSupport"]),
        tests("FilesTests", ["Files", "Base", "Formats", "TestSupport"]),
        tests("TransferEngineTests", ["TransferEngine", "Files", "Base", "Core", "Formats", "TestSupport"]),
        tests("HTTPServerTests", ["HTTPServer", "Base", "TestSupport"]),
        tests("StoreTests", ["Store", "SQL", "CSQLite", "Base", "Core", "Formats", "TestSupport"]),
        tests("BucketsTests", ["Buckets", "Base", "Core", "Formats", "TransferEngine"]),
        tests(
            "ServiceTests",
            [
                "Service", "Transfers", "Store", "SQL", "Files", "Buckets", "TransferEngine", "Base", "Core", "Formats",
                "TestSupport",
            ]),
        tests("WireMappingTests", ["WireMapping", "Core", "Formats", "Wire"]),
        tests(
            "LaunchesTests", ["Launches", "Store", "SQL", "TransferEngine", "Base", "Core", "Wire", "TestSupport"]),
        tests(
            "APITests",
            [
                "API", "Wire", "HTTPServer", "Service", "Transfers", "Store", "Launches", "Base", "Core", "Formats",
                "TestSupport",
            ]),
        tests(
            "FuzzTests",
            [
                "API", "URLSessionClient", "Options", "Buckets", "HTTPServer", "TransferEngine", "WireMapping", "Wire",
                "Base", "Core", "Formats",
            ]),
        tests("TestSupportTests", ["TestSupport", "Base", "Core"]),
        tests("SystemTests", ["TestSupport", "Store", "Base", "Core", "Formats", "Wire", "CCrypto"]),
    ]
)
