// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "swift-receiver",
    dependencies: [.package(name: "urlsessiond", path: "../..")],
    targets: [
        .executableTarget(
            name: "receiver", dependencies: [.product(name: "URLSessionClient", package: "urlsessiond")])
    ]
)
