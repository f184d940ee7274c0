import Formats
import Testing

@testable import Core

struct SessionConfigurationTests {
    private static func with(_ change: (inout SessionConfiguration) -> Void) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        change(&configuration)
        return configuration
    }

    /// A different value of every frozen member, by its name.
    private static let others: [(String, SessionConfiguration)] = [
        ("isDiscretionary", with { $0.isDiscretionary = true }),
        ("sessionSendsLaunchEvents", with { $0.sessionSendsLaunchEvents = false }),
        ("timeoutIntervalForRequest", with { $0.timeoutIntervalForRequest = 1 }),
        ("timeoutIntervalForResource", with { $0.timeoutIntervalForResource = 1 }),
        ("httpMaximumConnectionsPerHost", with { $0.httpMaximumConnectionsPerHost = 1 }),
        ("httpAdditionalHeaders", with { $0.httpAdditionalHeaders.append("X-A", "1") }),
        ("httpShouldSetCookies", with { $0.httpShouldSetCookies = false }),
        ("httpCookieAcceptPolicy", with { $0.httpCookieAcceptPolicy = .never }),
        ("allowsCellularAccess", with { $0.allowsCellularAccess = false }),
        ("allowsExpensiveNetworkAccess", with { $0.allowsExpensiveNetworkAccess = false }),
        ("allowsConstrainedNetworkAccess", with { $0.allowsConstrainedNetworkAccess = false }),
        ("waitsForConnectivity", with { $0.waitsForConnectivity = false }),
        ("tlsMinimumSupportedProtocolVersion", with { $0.tlsMinimumSupportedProtocolVersion = .tls13 }),
        ("requiresSecureTransport", with { $0.requiresSecureTransport = true }),
        ("pinnedPublicKeys", with { $0.pinnedPublicKeys = ["a": ["sha256/x"]] }),
        ("proxy", with { $0.proxy = SessionConfiguration.Proxy(kind: .http, host: "p", port: 1) }),
        ("authenticationChallenges", with { $0.authenticationChallenges = .performDefaultHandling }),
        ("networkServiceType", with { $0.networkServiceType = .background }),
        ("retryPolicy", with { $0.retryPolicy = .apple }),
        ("resumableUploads", with { $0.resumableUploads = .off }),
        ("stallInterval", with { $0.stallInterval = nil }),
        ("requestCachePolicy", with { $0.requestCachePolicy = .useProtocolCachePolicy }),
    ]

    @Test
    func `Each frozen member that differs is named, in order`() throws {
        for (name, other) in Self.others {
            #expect(try SessionConfiguration().differences(from: other) == [name])
            #expect(try other.differences(from: other).isEmpty)
        }
        // One for each member except `bandwidthLimit`.
        #expect(Mirror(reflecting: SessionConfiguration()).children.count == Self.others.count + 1)
    }

    @Test
    func `A changeable member differs only if both configurations set it`() throws {
        let limited = Self.with { $0.bandwidthLimit = 5 }
        #expect(try SessionConfiguration().differences(from: limited).isEmpty)
        #expect(try limited.differences(from: limited).isEmpty)
        for other in [SessionConfiguration(), Self.with { $0.bandwidthLimit = 6 }] {
            #expect(try limited.differences(from: other) == ["bandwidthLimit"])
        }
    }

    @Test
    func `Header fields are compared without order and case`() throws {
        let one = Self.with {
            $0.httpAdditionalHeaders = HTTPFields([
                HTTPField(name: "A", value: "1"), HTTPField(name: "b", value: "2"),
            ])
        }
        let other = Self.with {
            $0.httpAdditionalHeaders = HTTPFields([
                HTTPField(name: "B", value: "2"), HTTPField(name: "a", value: "1"),
            ])
        }
        #expect(try one.differences(from: other).isEmpty)
        let third = Self.with { $0.httpAdditionalHeaders = HTTPFields([HTTPField(name: "A", value: "2")]) }
        #expect(try one.differences(from: third) == ["httpAdditionalHeaders"])
    }

    @Test
    func `A configuration with secrets in headers or in the proxy is sealed`() {
        #expect(!SessionConfiguration().holdsSecrets)
        #expect(!Self.with { $0.httpAdditionalHeaders.append("Accept", "x") }.holdsSecrets)
        #expect(Self.with { $0.httpAdditionalHeaders.append("authorization", "x") }.holdsSecrets)
        #expect(
            Self.with {
                $0.proxy = SessionConfiguration.Proxy(kind: .http, host: "p", port: 1, user: "u", password: "p")
            }.holdsSecrets)
    }

    @Test(
        arguments: [
            ("Authorization", true), ("COOKIE", true), ("x-api-key", true), ("Proxy-Authorization", true),
            ("proxy-foo", true), ("X-Auth-Token", true), ("X-Mine", true), ("x-mine", true), ("Set-Cookie", false),
            ("Accept", false), ("X-Author", false), ("Content-Type", false),
        ])
    func `Secret header fields are known by their names`(name: String, isSecret: Bool) {
        #expect(SecretHeaders.isSecret(name, besides: ["X-Mine"]) == isSecret)
    }
}
