import Base
import CMicroHTTPD
import Glibc

/// libmicrohttpd's callbacks: each converts its arguments and calls the Swift method.
enum Callbacks {
    static func start(_ flags: UInt32, _ context: UnsafeMutableRawPointer, _ options: [MHD_OptionItem])
        -> OpaquePointer?
    {
        mhd_start_daemon(
            flags, access, context, options + [MHD_OptionItem(option: .END, value: 0, ptr_value: nil)])
    }

    /// The options that set callbacks; the logger first, as the manual requires.
    static func options(_ context: UnsafeMutableRawPointer) -> [MHD_OptionItem] {
        [
            MHD_OptionItem(
                option: .EXTERNAL_LOGGER, value: unsafeBitCast(message, to: Int.self), ptr_value: context),
            MHD_OptionItem(
                option: .URI_LOG_CALLBACK, value: unsafeBitCast(began, to: Int.self), ptr_value: context),
            MHD_OptionItem(
                option: .NOTIFY_COMPLETED, value: unsafeBitCast(completed, to: Int.self), ptr_value: context),
            MHD_OptionItem(
                option: .NOTIFY_CONNECTION, value: unsafeBitCast(connection, to: Int.self),
                ptr_value: context),
            MHD_OptionItem(
                option: .UNESCAPE_CALLBACK, value: unsafeBitCast(unescape, to: Int.self), ptr_value: nil),
        ]
    }

    /// Called when the request line is parsed; `uri` is the target as sent. The return value is the request's context.
    private static let began:
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) -> UnsafeMutableRawPointer? = {
            context, uri, connection in
            guard let context, let connection, let client = mhd_connection_context(connection) else { return nil }
            let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
            let request = ServedRequest(
                server: server, client: Unmanaged<ClientConnection>.fromOpaque(client).takeUnretainedValue(),
                handle: ConnectionHandle(pointer: connection), target: uri.map { String(cString: $0) } ?? "",
                targetAddress: UInt(bitPattern: uri))
            uri.map(hideQuery)
            request.client.requestBegan(
                request, headDeadline: request.began + server.limits.headDeadline.milliseconds)
            return Unmanaged.passRetained(request).toOpaque()  // Released in `completed`, the last to use it.
        }

    /// Empties the query, so that libmicrohttpd finds no parameters in it. The target has been read before.
    ///
    /// libmicrohttpd 0.9.75 keeps a record of each parameter in the connection's memory. When the memory is full, it
    /// continues as if it had not failed, and the client gets a reset or nothing (`parse_initial_message_line` ignores
    /// the result of `MHD_parse_arguments_`). The text is the library's own, writable buffer.
    private static func hideQuery(_ uri: UnsafePointer<CChar>) {
        guard let mark = strchr(uri, 0x3F), mark[1] != 0 else { return }
        mark[1] = 0
    }

    private static let access: MHD_AccessHandlerCallback = { _, _, _, method, version, bytes, size, slot in
        guard let kept = slot?.pointee, let method, let version, let size else { return .NO }
        let request = Unmanaged<ServedRequest>.fromOpaque(kept).takeUnretainedValue()
        let buffer = UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : size.pointee)
        size.pointee = 0
        return request.access(method, version, buffer) ? .YES : .NO
    }

    private static let completed: MHD_RequestCompletedCallback = { _, _, slot, _ in
        guard let kept = slot?.pointee else { return }
        slot?.pointee = nil
        Unmanaged<ServedRequest>.fromOpaque(kept).takeRetainedValue().over()
    }

    private static let connection: MHD_NotifyConnectionCallback = { context, connection, slot, event in
        guard let context, let connection, let slot else { return }
        let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
        if event == .CONNECTION_NOTIFY_STARTED {
            slot.pointee = Unmanaged.passRetained(server.connected(ConnectionHandle(pointer: connection))).toOpaque()
        } else if let kept = slot.pointee {
            slot.pointee = nil
            server.disconnected(Unmanaged<ClientConnection>.fromOpaque(kept).takeRetainedValue())
        }
    }

    /// Leaves the text as sent: the server decodes segments once, after routing.
    private static let unescape:
        @convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafeMutablePointer<CChar>?) -> Int = {
            _, _, text in text.map { strlen($0) } ?? 0
        }

    private static let message: MHD_LogCallback = { context, format, arguments in
        guard let context, let format, let arguments else { return }
        var buffer = [CChar](repeating: 0, count: 512)
        vsnprintf(&buffer, buffer.count, format, arguments)
        let text = buffer.prefix { $0 != 0 && $0 != 0x0A }.map(UInt8.init(bitPattern:))
        let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
        server.log.debug("libmicrohttpd logged a message", ("message", String(decoding: text, as: UTF8.self)))
    }
}
