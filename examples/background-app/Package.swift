// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "background-app",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "urlsessiond", path: "../..")],
    targets: [
        .executableTarget(
            name: "app", dependencies: [.product(name: "URLSessionClient", package: "urlsessiond")])
    ]
)
