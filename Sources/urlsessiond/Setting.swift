/// One setting, given as a flag, an environment variable or a member of the configuration file.
struct Setting: Sendable {
    enum Kind: Sendable, Equatable {
        case text
        case flag
        case number(ClosedRange<Int64>)
        /// A number of bytes, or a number with the suffix `K`, `M`, `G` or `T`.
        case bytes
        /// Seconds, or a number with the suffix `s`, `m`, `h` or `d`.
        case duration
        case choice([String])
    }

    let name: String
    let kind: Kind
    var isRepeatable = false
    var isSecret = false
    let argument: String
    let help: String

    /// `URLSESSIOND_DATA_DIR` for `--data-dir`.
    var environmentName: String {
        "URLSESSIOND_"
            + String(
                decoding: name.utf8.map { $0 == 0x2D ? 0x5F : (0x61...0x7A).contains($0) ? $0 - 32 : $0 }, as: UTF8.self
            )
    }

    static let all: [Setting] = [
        Setting(name: "config", kind: .text, argument: "FILE", help: "JSON file with members named like these flags"),
        Setting(name: "listen", kind: .text, argument: "ADDR:PORT", help: "where the API listens (127.0.0.1:8080)"),
        Setting(name: "data-dir", kind: .text, argument: "DIR", help: "database, contents, keys (./urlsessiond-data)"),
        Setting(
            name: "store", kind: .text, isSecret: true, argument: "URL",
            help: "postgresql://... in place of the database in --data-dir"),
        Setting(
            name: "store-pooled", kind: .flag, argument: "",
            help: "a pooler in transaction mode is before --store: prepare no statements"),
        Setting(
            name: "roles", kind: .text, isRepeatable: true, argument: "ROLE[,...]",
            help: "what this node does with --store: api, transfer, launch (all)"),
        Setting(name: "admin-key-file", kind: .text, argument: "FILE", help: "the operator's key (DATA_DIR/admin.key)"),
        Setting(name: "master-key-file", kind: .text, argument: "FILE", help: "seals secrets (DATA_DIR/master.key)"),
        Setting(
            name: "new-master-key", kind: .flag, argument: "",
            help: "start without the key of an existing database; its secrets are lost"),
        Setting(name: "dev", kind: .flag, argument: "", help: "a developer's own machine: fixed keys, loopback only"),
        Setting(name: "public-url", kind: .text, argument: "URL", help: "base of the URLs put into webhooks"),
        Setting(
            name: "transfer-threads", kind: .number(1...64), argument: "N", help: "event loops for transfers (cores)"),
        Setting(name: "max-transfers", kind: .number(1...65_536), argument: "N", help: "concurrent transfers (256)"),
        Setting(
            name: "max-transfers-per-host", kind: .number(1...65_536), argument: "N",
            help: "concurrent transfers to one host (32)"),
        Setting(
            name: "allow-egress", kind: .text, isRepeatable: true, argument: "CIDR[,...]",
            help: "private ranges that may be reached"),
        Setting(
            name: "allow-http-webhooks", kind: .flag, argument: "", help: "plain-http webhooks inside --allow-egress"),
        Setting(
            name: "files-root", kind: .text, isRepeatable: true, argument: "NAME=DIR",
            help: "a folder that tasks may read from and move to"),
        Setting(
            name: "bucket", kind: .text, isRepeatable: true, argument: "NAME=URL",
            help: "s3://BUCKET/PREFIX?region=&endpoint= that tasks may read and write"),
        Setting(
            name: "contents", kind: .text, argument: "URL",
            help: "s3://BUCKET/PREFIX?region=&endpoint= for contents and bodies, in place of --data-dir"),
        Setting(
            name: "bucket-credentials", kind: .text, argument: "FILE",
            help: "keys as AWS tools have them, a profile for each NAME, and [contents]"),
        Setting(name: "content-retention", kind: .duration, argument: "TIME", help: "after acknowledgement (24h)"),
        Setting(
            name: "unacknowledged-retention", kind: .duration, argument: "TIME", help: "without acknowledgement (30d)"),
        Setting(
            name: "cache-capacity", kind: .bytes, argument: "BYTES",
            help: "responses kept for other tasks (10G; 0: none)"),
        Setting(name: "webhook-timeout", kind: .duration, argument: "TIME", help: "for a receiver's answer (15s)"),
        Setting(name: "free-disk-floor", kind: .bytes, argument: "BYTES", help: "free bytes that stay free (1G)"),
        Setting(
            name: "rate-limit", kind: .number(1...1_000_000), argument: "N", help: "requests a second for each key"),
        Setting(
            name: "metrics-listen", kind: .text, argument: "ADDR:PORT", help: "/metrics without a key, there only"),
        Setting(
            name: "cors-origin", kind: .text, isRepeatable: true, argument: "ORIGIN",
            help: "a web page's origin that may call"),
        Setting(name: "no-page", kind: .flag, argument: "", help: "no page at /, no reference at /docs"),
        Setting(name: "tls-certificate", kind: .text, argument: "FILE", help: "PEM chain; serves HTTPS"),
        Setting(name: "tls-key", kind: .text, isSecret: true, argument: "FILE", help: "PEM key of the certificate"),
        Setting(name: "shutdown-timeout", kind: .duration, argument: "TIME", help: "limit for a clean end (8s)"),
        Setting(name: "log-format", kind: .choice(["text", "json"]), argument: "text|json", help: "of standard error"),
        Setting(
            name: "log-level", kind: .choice(["debug", "info", "warning", "error"]), argument: "LEVEL",
            help: "least level that is logged (info)"),
    ]

    static func named(_ name: String) -> Setting? { all.first { $0.name == name } }
}
