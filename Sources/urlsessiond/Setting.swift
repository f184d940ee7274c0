import Options

/// The settings of the service, each given as a flag, an environment variable or a member of the configuration file.
enum Setting {
    /// `URLSESSIOND_DATA_DIR` for `--data-dir`.
    static func environmentName(of setting: Option) -> String {
        "URLSESSIOND_" + setting.name.uppercased().replacing("-", with: "_")
    }

    static let all: [Option] = [
        Option("--config FILE", "JSON file with members named like these flags"),
        Option("--listen ADDR:PORT", "the address of the API (127.0.0.1:8080)"),
        Option("--data-dir DIR", "database, contents, keys (./urlsessiond-data)"),
        Option("--store URL", "postgresql://... in place of the database in --data-dir"),
        Option("--store-pooled", "prepare no statements, for a pooler in transaction mode before --store"),
        Option(
            "--roles ROLE[,...]", "the roles of this node, with --store: api, transfer, launch (all)", isRepeated: true),
        Option("--admin-key-file FILE", "the file of the operator's key (DATA_DIR/admin.key)"),
        Option("--master-key-file FILE", "the file of the key that seals secrets (DATA_DIR/master.key)"),
        Option("--new-master-key", "start without the key of an existing database; its secrets are lost"),
        Option("--dev", "development mode: fixed keys, loopback only"),
        Option("--public-url URL", "base of the URLs in webhooks"),
        Option("--transfer-threads N", "event loops for transfers (cores)", .number(1...64)),
        Option("--max-transfers N", "concurrent transfers (256)", .number(1...65_536)),
        Option("--max-transfers-per-host N", "concurrent transfers to one host (32)", .number(1...65_536)),
        Option("--allow-egress CIDR[,...]", "private ranges that may be reached", isRepeated: true),
        Option("--allow-http-webhooks", "plain-http webhooks inside --allow-egress"),
        Option("--files-root NAME=DIR", "a folder that tasks may read from and move to", isRepeated: true),
        Option(
            "--bucket NAME=URL", "s3://BUCKET/PREFIX?region=&endpoint= that tasks may read and write",
            isRepeated: true),
        Option(
            "--contents URL", "s3://BUCKET/PREFIX?region=&endpoint= for contents and bodies, in place of --data-dir"),
        Option(
            "--bucket-credentials FILE", "keys in the form of AWS tools, with a profile for each NAME, and [contents]"),
        Option("--content-retention TIME", "after acknowledgement (24h)", .duration),
        Option("--unacknowledged-retention TIME", "without acknowledgement (30d)", .duration),
        Option("--cache-capacity BYTES", "responses kept for other tasks (10G; 0: none)", .bytes),
        Option("--webhook-timeout TIME", "for a receiver's response (15s)", .duration),
        Option("--free-disk-floor BYTES", "bytes of the disk that stay free (1G)", .bytes),
        Option("--rate-limit N", "requests per second and key", .number(1...1_000_000)),
        Option("--metrics-listen ADDR:PORT", "address for /metrics without a key"),
        Option("--cors-origin ORIGIN", "a web page's origin that may send requests", isRepeated: true),
        Option("--no-page", "no page at /, no reference at /docs"),
        Option("--tls-certificate FILE", "PEM chain; serves HTTPS"),
        Option("--tls-key FILE", "PEM key of the certificate"),
        Option("--shutdown-timeout TIME", "limit for a clean end (8s)", .duration),
        Option("--log-format text|json", "format of the log", .choice(["text", "json"])),
        Option("--log-level LEVEL", "lowest level of the log (info)", .choice(["debug", "info", "warning", "error"])),
    ]

    static func named(_ name: String) -> Option? { all.first { $0.name == name } }
}
