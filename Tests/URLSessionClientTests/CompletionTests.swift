import Foundation
import TestSupport
import Testing

/// The scripts of `urlsession completions` in each shell.
struct CompletionTests {
    private let folder = TemporaryFolder()
    private let script: String

    init() {
        script = folder.file("script")
        folder.write([], to: "upload.bin")
    }

    /// Lines, and the completions of their last word.
    private static let lines: [(line: String, word: String)] = [
        ("urlsession ge", "get"), ("urlsession webhook rot", "rotate"), ("urlsession get --for", "--force"),
        ("urlsession webhook set --sta", "--state"), ("urlsession tasks s --outcome fa", "failed"),
        ("urlsession put up", "upload.bin"), ("urlsession completions z", "zsh"), ("urlsession --pro", "--profile"),
        ("urlsession --profile x ge", "get"), ("urlsession --json --profile x webhook rot", "rotate"),
        ("urlsession --profile=x get --for", "--force"), ("urlsession --url http://h:80 webhook set --sta", "--state"),
        ("urlsession --json tasks s --outcome fa", "failed"), ("urlsession --profile x put up", "upload.bin"),
        ("urlsession answer q useN", "useNewRequest"), ("urlsession help ge", "get"),
    ]

    @Test func `Bash completes commands, options, choices and files, whatever precedes the command`() async throws {
        try await load("bash")
        for (line, word) in Self.lines { #expect(try await bash(line) == [word], "\(line)") }
        #expect(try await bash("urlsession tasks s --outcome=fa") == ["failed"])
        #expect(try await bash("urlsession tasks s --outcome=").contains("succeeded"))
        #expect(try await bash("urlsession --profile ") == [])
    }

    @Test(.enabled(if: isThere("zsh"), "zsh is not installed"))
    func `Zsh completes commands, options, choices and files, whatever precedes the command`() async throws {
        try await load("zsh")
        let lines = Self.lines.map(\.line) + ["urlsession --profile "]
        let completed = try await zsh(lines)
        let expected = Self.lines.map {
            $0.line.split(separator: " ").dropLast().joined(separator: " ") + " \($0.word)"
        }
        #expect(completed == expected + ["urlsession --profile"])
    }

    @Test(.enabled(if: isThere("fish"), "fish is not installed"))
    func `Fish completes commands, options, choices and files, whatever precedes the command`() async throws {
        try await load("fish")
        for (line, word) in Self.lines { #expect(try await fish(line) == [word], "\(line)") }
        #expect(try await fish("urlsession --profile ") == [])
    }

    /// Lines whose last word begins the name of a session; their options name the service.
    private static func sessionLines(_ url: String) -> [String] {
        let own = [
            "tasks ni", "explain ni", "events ni", "get -s ni", "launches --session ni", "webhook redeliver -s ni",
        ]
        return own.map { "urlsession --url \(url) \($0)" } + ["urlsession attach --url \(url) ni"]
    }

    /// A service with sessions, one of them named `nightly`.
    private func serviceWithSessions() async throws -> (ServiceProcess, url: String) {
        let service = try await ServiceProcess()
        for name in ["nightly", "other"] { _ = try await service.api.put("/v1/sessions/\(name)", [:]) }
        return (service, "http://127.0.0.1:\(service.port)")
    }

    @Test func `Bash completes the names of sessions from the service`() async throws {
        try await load("bash")
        let (service, url) = try await serviceWithSessions()
        for line in Self.sessionLines(url) { #expect(try await bash(line) == ["nightly"], "\(line)") }
        try await service.kill()
        #expect(try await bash("urlsession --url \(url) tasks ni") == [])
    }

    @Test(.enabled(if: isThere("zsh"), "zsh is not installed"))
    func `Zsh completes the names of sessions from the service`() async throws {
        try await load("zsh")
        let (service, url) = try await serviceWithSessions()
        let lines = Self.sessionLines(url)
        #expect(try await zsh(lines) == lines.map { "\($0.dropLast(2))nightly" })
        withExtendedLifetime(service) {}
    }

    @Test(.enabled(if: isThere("fish"), "fish is not installed"))
    func `Fish completes the names of sessions from the service`() async throws {
        try await load("fish")
        let (service, url) = try await serviceWithSessions()
        for line in Self.sessionLines(url) { #expect(try await fish(line) == ["nightly"], "\(line)") }
        withExtendedLifetime(service) {}
    }

    // MARK: Shells

    /// The command's folder comes first, so that `urlsession` is the tested program.
    private static let path = [
        "/usr/bin/env", "PATH=\(CommandLineTests.tool.dropLast("/urlsession".count)):/usr/bin:/bin",
    ]

    private static func isThere(_ shell: String) -> Bool {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/\(shell)")
    }

    private func load(_ shell: String) async throws {
        folder.write(try await ChildProcess.run([CommandLineTests.tool, "completions", shell]), to: "script")
        try await ChildProcess.run(["/usr/bin/\(shell)", "-n", script])
    }

    private func lines(_ output: [UInt8]) -> [String] {
        String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    private func bash(_ line: String) async throws -> [String] {
        // Readline treats = and : as separate words.
        var words = [""]
        for character in line {
            if character == " " {
                words.append("")
            } else if "=:".contains(character) || words.last == "=" || words.last == ":" {
                words.append(String(character))
            } else {
                words[words.count - 1].append(character)
            }
        }
        words = words.map { "'\($0)'" }
        let call = """
            set -eu; cd '\(folder.path)'; source '\(script)'
            COMP_LINE='\(line)'
            COMP_WORDS=(\(words.joined(separator: " "))); COMP_CWORD=\(words.count - 1); _urlsession
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        return lines(try await ChildProcess.run(Self.path + ["/bin/bash", "-c", call], within: .seconds(60)))
    }

    private func fish(_ line: String) async throws -> [String] {
        let call = "cd '\(folder.path)'; source '\(script)'; complete -C '\(line)'"
        return lines(
            try await ChildProcess.run(Self.path + ["/usr/bin/fish", "--no-config", "-c", call], within: .seconds(60))
        )
        .map { String($0.prefix { $0 != "\t" }) }
    }

    /// The completed lines after Tab. Zsh completes only in its line editor, so it gets a terminal, and a widget that
    /// prints the line.
    private func zsh(_ lines: [String]) async throws -> [String] {
        let output = folder.write([], to: "completed")
        let call = """
            cd '\(folder.path)'; zmodload zsh/zpty; zpty shell 'TERM=dumb exec zsh -f -i'
            zpty -w shell 'autoload -Uz compinit; compinit -u -D; source "\(script)"'
            zpty -w shell 'press() { zle complete-word; print -r -- "$BUFFER" >> "\(output)"; BUFFER= }'
            zpty -w shell 'zle -N press; bindkey "^I" press; print ready >> "\(output)"'
            wait_for() { while (( $(wc -l < '\(output)') < $1 )); do sleep 0.05; done }
            wait_for 1
            for line in "$@"; do
                zpty -w -n shell "$line"$'\\t'
                wait_for $((++count + 1))
            done
            zpty -d shell
            """
        try await ChildProcess.run(Self.path + ["/usr/bin/zsh", "-f", "-c", call, "zsh"] + lines, within: .seconds(60))
        return self.lines(readFile(output) ?? []).dropFirst().map { $0.trimmingCharacters(in: .whitespaces) }
    }
}
