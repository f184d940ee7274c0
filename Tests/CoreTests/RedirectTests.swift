import Testing

@testable import Core

@Suite struct RedirectTests {
    static let here = url()

    static func url(isSecure: Bool = true, host: String = "example.com", port: UInt16 = 443) -> ParsedURL {
        ParsedURL(text: "from no response", isSecure: isSecure, host: host, port: port)
    }

    func decide(
        _ status: Int, to target: ParsedURL? = here, method: String = "GET", hops: Int = 0, task: ParsedURL = here,
        from current: ParsedURL = here, location: [String] = ["/next"]
    ) -> Redirect.Decision {
        Redirect.decide(
            head: head(status, location.map { ("Location", $0) }), method: method, hops: hops, task: task,
            current: current, target: target)
    }

    @Test(arguments: [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"), (308, "POST", "POST"),
        (301, "PUT", "PUT"), (302, "DELETE", "DELETE"), (303, "PUT", "GET"), (303, "HEAD", "GET"),
        (301, "HEAD", "HEAD"), (307, "PUT", "PUT"), (302, "GET", "GET"),
    ])
    func `Each status has its method`(_ status: Int, _ method: String, _ next: String) {
        #expect(
            decide(status, method: method) == .follow(method: next, dropBody: next != method, dropHeaders: false))
    }

    @Test(arguments: [200, 300, 304, 305, 306, 404])
    func `Other statuses are no redirects`(_ status: Int) {
        #expect(decide(status) == .notARedirect)
    }

    @Test func `Sixteen redirects are followed, the seventeenth is not`() {
        #expect(decide(302, hops: 15) == .follow(method: "GET", dropBody: false, dropHeaders: false))
        #expect(decide(302, hops: 16) == .fail(.tooManyRedirects))
    }

    @Test(arguments: ["#", "#part"]) func `A location with a fragment alone is a loop`(_ location: String) {
        #expect(decide(302, location: [location]) == .fail(.tooManyRedirects))
        #expect(decide(303, method: "POST", location: [location]) == .fail(.tooManyRedirects))
    }

    @Test(arguments: [
        [], [""], ["/a", "/b"], ["/a\r\nX: y"], ["http://user@example.com/"], ["//user:secret@example.com/"],
        [String(repeating: "a", count: 8193)],
    ])
    func `An unusable location fails the task`(_ location: [String]) {
        #expect(decide(302, location: location) == .fail(.unusableLocation))
    }

    @Test(arguments: ["/a@b", "//example.com/a@b", "http://example.com?x=@", "a:b@c", "/a"])
    func `An at sign outside the authority is no user information`(_ location: String) {
        #expect(decide(302, location: [location]) == .follow(method: "GET", dropBody: false, dropHeaders: false))
    }

    @Test(arguments: [
        ("/a", Redirect.Refusal.unusableLocation), ("ftp://a:21/", .unsupportedScheme),
        ("FILE:///a", .unsupportedScheme),
        ("https://", .unusableLocation), ("https://a:0/", .unusableLocation), (":a", .unusableLocation),
        ("a b:c", .unusableLocation),
    ])
    func `The scheme of an unusable location selects the refusal`(
        _ location: String, _ refusal: Redirect.Refusal
    ) {
        #expect(decide(302, to: nil, location: [location]) == .fail(refusal))
    }

    @Test func `A redirect from https to http is followed only for a task that began with http`() {
        let plain = Self.url(isSecure: false, port: 80)
        #expect(decide(302, to: plain) == .fail(.insecure))
        #expect(
            decide(302, to: plain, task: plain) == .follow(method: "GET", dropBody: false, dropHeaders: true))
        #expect(
            decide(302, to: Self.here, task: plain, from: plain)
                == .follow(method: "GET", dropBody: false, dropHeaders: true))
    }

    @Test(arguments: [
        (here, false), (url(port: 8443), true), (url(host: "www.example.com"), true),
    ])
    func `Secrets are sent only to the same scheme, host and port`(_ target: ParsedURL, _ drops: Bool) {
        #expect(decide(302, to: target) == .follow(method: "GET", dropBody: false, dropHeaders: drops))
    }

    static let fields = HTTPFields(
        [
            "Authorization", "cookie", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token", "X-Mine", "Accept", "Host",
            "Content-Type", "Transfer-Encoding",
        ].map { HTTPField(name: $0, value: "v") })

    @Test func `Another origin gets no credentials, and a GET no description of a body`() {
        func names(dropBody: Bool, dropHeaders: Bool) -> [String] {
            Redirect.fields(Self.fields, dropBody: dropBody, dropHeaders: dropHeaders, sensitive: ["x-mine"])
                .fields.map(\.name)
        }
        #expect(names(dropBody: false, dropHeaders: false).count == 10)
        #expect(names(dropBody: false, dropHeaders: true) == ["Accept", "Content-Type", "Transfer-Encoding"])
        #expect(names(dropBody: true, dropHeaders: true) == ["Accept"])
    }

    @Test func `Every refusal has Apple's code`() {
        #expect(Redirect.Refusal.allCases.map(\.code.rawValue) == [-1007, -1010, -1002, -1022])
    }

    @Test func `The text of an origin has its port, and brackets around an IPv6 address`() {
        #expect(Self.url(isSecure: false, host: "::1", port: 80).origin == "http://[::1]:80")
    }
}
