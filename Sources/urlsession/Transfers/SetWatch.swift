import URLSessionClient
import Wire

/// Follows a version of a set to its end.
struct SetWatch {
    private let call: Invocation

    init(_ call: Invocation) { self.call = call }

    /// Milliseconds between two queries.
    private static let pause = 500

    /// - Returns: The version at its end.
    /// - Throws: `CancellationError` when the caller cancels. The service continues.
    func follow(_ version: SetVersion) async throws -> SetVersion {
        var (version, display, meter) = (version, FilesDisplay(call.output), SpeedMeter())
        defer { display.end() }
        do {
            while version.state.isInFlight {
                display.draw(Self.bar(of: version, &meter), version)
                try await Task.sleep(for: .milliseconds(Self.pause))
                let (name, id) = (version.name, version.versionId)
                version = try await Patience.insist { try await call.client.version(id, ofSet: name) }
            }
            return version
        } catch  where Task.isCancelled {
            call.output.note(
                "Detached: the service continues. Show the version with: urlsession set show \(version.name) "
                    + version.version)
            throw CancellationError()
        }
    }

    private static func bar(of version: SetVersion, _ meter: inout SpeedMeter) -> Bar {
        let (bytes, now) = (version.bytes, Follower.seconds)
        var bar = Bar(name: version.name, received: bytes.fetched + bytes.reused)
        bar.expected = bytes.total > 0 ? bytes.total : nil
        meter.add(bytes.fetched, at: now)
        bar.speed = meter.speed(at: now)
        switch version.state {
        case .expanding: bar.note = "the list of files is being made"
        case .verifying: bar.note = "being verified"
        case .publishing: bar.note = "being published"
        default: break
        }
        return bar
    }
}

/// The view of the files of a version: bars on a terminal, else a line now and then.
struct FilesDisplay {
    private let output: Output
    private let isLive: Bool
    private var bars = Bars()
    private var lastLine = Follower.seconds

    init(_ output: Output) {
        self.output = output
        isLive = Terminal.isTerminal(2) && !output.isQuiet && !output.isJSON
    }

    fileprivate mutating func draw(_ bar: Bar, _ version: SetVersion) {
        let files = version.files
        draw([bar], done: files.fetched + files.reused, of: files.total, in: bar)
    }

    /// - Parameters:
    ///   - bars: The files in flight.
    ///   - whole: All bytes together.
    mutating func draw(_ bars: [Bar], done: Int64, of files: Int64, in whole: Bar) {
        let total =
            "\(done) of \(files) done, " + (whole.note ?? Bar.figures(whole.received, whole.expected, whole.speed))
        if isLive {
            let columns = Terminal.size.columns
            self.bars.draw(bars.map { $0.line(columns: columns, isUnicode: Terminal.isUnicode) } + [total])
        } else if Follower.seconds - lastLine >= TransferDisplay.pause, !output.isJSON {
            lastLine = Follower.seconds
            output.note(total)
        }
    }

    /// Clears the bars, so that lines can be written.
    mutating func end() { if isLive { bars.draw([]) } }
}
