import CCurl
import Glibc

/// libcurl as a whole.
enum Curl {
    /// Initialized once, before the first handle. Without OpenSSL's `atexit` handler, which frees its tables while
    /// other threads may be in handshakes.
    static let isReady: Bool = {
        typealias Initialize = @convention(c) (UInt64, OpaquePointer?) -> Int32
        _ = symbol("OPENSSL_init_crypto", Initialize.self)?(0x0008_0000, nil)  // OPENSSL_INIT_NO_ATEXIT
        return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
    }()
}

/// A C function of a library that libcurl loaded, and for which there is no header.
func symbol<Function>(_ name: String, _ type: Function.Type) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: type) }
}

/// One libcurl easy handle: a single HTTP exchange at a time.
///
/// Created, used and freed on the thread of ``TransferLoop``. Corresponds to `CURL *`.
final class Easy {
    let raw: UnsafeMutableRawPointer
    private let message: UnsafeMutablePointer<CChar>
    private var lists: [UnsafeMutablePointer<curl_slist>] = []

    init?() {
        guard let raw = curl_easy_init() else { return nil }
        self.raw = raw
        message = .allocate(capacity: Int(CURL_ERROR_SIZE))
        message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        set(CURLOPT_ERRORBUFFER, message)
    }

    deinit {
        curl_easy_cleanup(raw)
        freeLists()
        message.deallocate()
    }

    /// Resets all options for the next exchange.
    func reset() {
        // curl_easy_reset keeps cookies: "It does not change the following information kept in the handle: live
        // connections, the Session ID cache, the DNS cache, the cookies". Null ends the cookie engine.
        set(CURLOPT_COOKIEFILE, nil as UnsafeMutableRawPointer?)
        curl_easy_reset(raw)
        freeLists()
        message[0] = 0
        set(CURLOPT_ERRORBUFFER, message)
    }

    private func freeLists() {
        for list in lists { curl_slist_free_all(list) }
        lists = []
    }

    var errorMessage: String { String(cString: message) }

    // MARK: Options

    /// Sets an option that can only fail through a programming error.
    func set(_ option: CURLoption, _ value: Int) {
        check(ccurl_easy_set_long(raw, option, value), option)
    }

    /// Sets a buffer size. libcurl ignores it if the handle still has the buffer of its last exchange.
    func prefer(_ option: CURLoption, _ value: Int) { _ = ccurl_easy_set_long(raw, option, value) }

    func set(_ option: CURLoption, offset: Int64) {
        check(ccurl_easy_set_offset(raw, option, curl_off_t(offset)), option)
    }

    func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer?) {
        check(ccurl_easy_set_pointer(raw, option, value), option)
    }

    func set(_ option: CURLoption, function: ccurl_data_function) {
        check(ccurl_easy_set_data_function(raw, option, function), option)
    }

    func set(seek: ccurl_seek_function) { check(ccurl_easy_set_seek_function(raw, seek), CURLOPT_SEEKFUNCTION) }

    func set(openSocket: ccurl_open_socket_function) {
        check(ccurl_easy_set_open_socket_function(raw, openSocket), CURLOPT_OPENSOCKETFUNCTION)
    }

    func set(beforeRequest: ccurl_before_request_function) {
        check(ccurl_easy_set_before_request_function(raw, beforeRequest), CURLOPT_PREREQFUNCTION)
    }

    /// Passes the TLS context to the callback before each handshake. Only some TLS libraries support this.
    func set(beforeHandshake: ccurl_handshake_function) { _ = ccurl_easy_set_handshake_function(raw, beforeHandshake) }

    /// Sets an option whose value comes from a user.
    func set(_ option: CURLoption, _ value: String) throws(CurlError) {
        let code = ccurl_easy_set_string(raw, option, value)
        guard code == CURLE_OK else { throw CurlError(code: code) }
    }

    /// libcurl copies the bytes.
    func set(_ option: CURLoption, blob: [UInt8]) throws(CurlError) {
        let code = blob.withUnsafeBytes { bytes in
            var value = curl_blob(
                data: UnsafeMutableRawPointer(mutating: bytes.baseAddress), len: bytes.count,
                flags: UInt32(CURL_BLOB_COPY))
            return ccurl_easy_set_blob(raw, option, &value)
        }
        guard code == CURLE_OK else { throw CurlError(code: code) }
    }

    /// The list lives until the next ``reset()``.
    func set(_ option: CURLoption, list values: [String]) {
        var list: UnsafeMutablePointer<curl_slist>?
        for value in values {
            guard let longer = curl_slist_append(list, value) else { preconditionFailure("curl_slist_append") }
            list = longer
        }
        guard let list else { return }
        lists.append(list)
        check(ccurl_easy_set_list(raw, option, list), option)
    }

    /// Adds lines to the cookie engine, which ignores invalid lines.
    func add(cookies: [String]) {
        for cookie in cookies { _ = ccurl_easy_set_string(raw, CURLOPT_COOKIELIST, cookie) }
    }

    private func check(_ code: CURLcode, _ option: CURLoption) {
        precondition(code == CURLE_OK, "option \(option.rawValue): \(CurlError(code: code).description)")
    }

    // MARK: Facts

    func number(_ info: CURLINFO) -> Int {
        var value = 0
        return ccurl_easy_get_long(raw, info, &value) == CURLE_OK ? value : 0
    }

    func offset(_ info: CURLINFO) -> Int64 {
        var value: curl_off_t = 0
        return ccurl_easy_get_offset(raw, info, &value) == CURLE_OK ? Int64(value) : 0
    }

    /// `nil` if libcurl has no value or an empty one.
    func string(_ info: CURLINFO) -> String? {
        var value: UnsafeMutablePointer<CChar>?
        guard ccurl_easy_get_string(raw, info, &value) == CURLE_OK, let value, value[0] != 0 else { return nil }
        return String(cString: value)
    }

    /// All unexpired lines of the cookie engine.
    var cookies: [String] {
        var list: UnsafeMutablePointer<curl_slist>?
        guard ccurl_easy_get_list(raw, CURLINFO_COOKIELIST, &list) == CURLE_OK else { return [] }
        defer { curl_slist_free_all(list) }
        return Self.lines(of: list)
    }

    /// OpenSSL's `SSL *`, valid only while the connection is in use.
    var tlsSession: UnsafeMutableRawPointer? {
        var info: UnsafeMutablePointer<curl_tlssessioninfo>?
        guard ccurl_easy_get_tls(raw, &info) == CURLE_OK, let info, info.pointee.backend == CURLSSLBACKEND_OPENSSL
        else { return nil }
        return info.pointee.internals
    }

    private static func lines(of list: UnsafeMutablePointer<curl_slist>?) -> [String] {
        var lines: [String] = []
        var entry = list
        while let node = entry {
            if let data = node.pointee.data { lines.append(String(cString: data)) }
            entry = node.pointee.next
        }
        return lines
    }
}

@available(*, unavailable)
extension Easy: Sendable {}

/// A `CURLcode` other than `CURLE_OK`.
struct CurlError: Error, CustomStringConvertible {
    let code: CURLcode

    var description: String { String(cString: curl_easy_strerror(code)) }
}
