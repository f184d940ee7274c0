import Options

/// The settings of the service, each given as a flag, an environment variable or a member of the configuration file.
enum Setting {
    /// `URLSESSIOND_DATA_DIR` for `--data-dir`.
    static func environmentName(of setting: Option) -> String {
        "URLSESSIOND_" + setting.name.uppercased().replacing("-", with: "_")
    }

    static let all: [Option] = [
        Option(name: "config", value: "FILE", help: "JSON file with members named like these flags"),
        Option(name: "listen", value: "ADDR:PORT", help: "where the API listens (127.0.0.1:8080)"),
        Option(name: "data-dir", value: "DIR", help: "database, contents, keys (./urlsessiond-data)"),
        Option(name: "store", value: "URL", help: "postgresql://... in place of the database in --data-dir"),
        Option(name: "store-pooled", help: "a pooler in transaction mode is before --store: prepare no statements"),
        Option(
            name: "roles", value: "ROLE[,...]", isRepeated: true,
            help: "what this node does with --store: api, transfer, launch (all)"),
        Option(name: "admin-key-file", value: "FILE", help: "the operator's key (DATA_DIR/admin.key)"),
        Option(name: "master-key-file", value: "FILE", help: "seals secrets (DATA_DIR/master.key)"),
        Option(name: "new-master-key", help: "start without the key of an existing database; its secrets are lost"),
        Option(name: "dev", help: "a developer's own machine: fixed keys, loopback only"),
        Option(name: "public-url", value: "URL", help: "base of the URLs put into webhooks"),
        Option(name: "transfer-threads", value: "N", kind: .number(1...64), help: "event loops for transfers (cores)"),
        Option(name: "max-transfers", value: "N", kind: .number(1...65_536), help: "concurrent transfers (256)"),
        Option(
            name: "max-transfers-per-host", value: "N", kind: .number(1...65_536),
            help: "concurrent transfers to one host (32)"),
        Option(name: "allow-egress", value: "CIDR[,...]", isRepeated: true, help: "private ranges that may be reached"),
        Option(name: "allow-http-webhooks", help: "plain-http webhooks inside --allow-egress"),
        Option(
            name: "files-root", value: "NAME=DIR", isRepeated: true,
            help: "a folder that tasks may read from and move to"),
        Option(
            name: "bucket", value: "NAME=URL", isRepeated: true,
            help: "s3://BUCKET/PREFIX?region=&endpoint= that tasks may read and write"),
        Option(
            name: "contents", value: "URL",
            help: "s3://BUCKET/PREFIX?region=&endpoint= for contents and bodies, in place of --data-dir"),
        Option(
            name: "bucket-credentials", value: "FILE",
            help: "keys as AWS tools have them, a profile for each NAME, and [contents]"),
        Option(name: "content-retention", value: "TIME", kind: .duration, help: "after acknowledgement (24h)"),
        Option(name: "unacknowledged-retention", value: "TIME", kind: .duration, help: "without acknowledgement (30d)"),
        Option(
            name: "cache-capacity", value: "BYTES", kind: .bytes,
            help: "responses kept for other tasks (10G; 0: none)"),
        Option(name: "webhook-timeout", value: "TIME", kind: .duration, help: "for a receiver's answer (15s)"),
        Option(name: "free-disk-floor", value: "BYTES", kind: .bytes, help: "free bytes that stay free (1G)"),
        Option(name: "rate-limit", value: "N", kind: .number(1...1_000_000), help: "requests a second for each key"),
        Option(name: "metrics-listen", value: "ADDR:PORT", help: "/metrics without a key, there only"),
        Option(name: "cors-origin", value: "ORIGIN", isRepeated: true, help: "a web page's origin that may call"),
        Option(name: "no-page", help: "no page at /, no reference at /docs"),
        Option(name: "tls-certificate", value: "FILE", help: "PEM chain; serves HTTPS"),
        Option(name: "tls-key", value: "FILE", help: "PEM key of the certificate"),
        Option(name: "shutdown-timeout", value: "TIME", kind: .duration, help: "limit for a clean end (8s)"),
        Option(name: "log-format", value: "text|json", kind: .choice(["text", "json"]), help: "of standard error"),
        Option(
            name: "log-level", value: "LEVEL", kind: .choice(["debug", "info", "warning", "error"]),
            help: "least level that is logged (info)"),
    ]

    static func named(_ name: String) -> Option? { all.first { $0.name == name } }
}
