import Base
import Glibc
import TestSupport
import Testing

/// The values of `--bucket` and `--bucket-credentials`.
@Suite struct BucketSettingTests {
    private static let keys = ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "canary-of-a-secret"]

    @Test(arguments: [
        ("b", "is not NAME=s3://BUCKET/PREFIX"), ("b=https://x/", "begins with s3://"),
        ("b=s3://UPPER", "a bucket's name"), ("b=s3://ab", "a bucket's name"),
        ("b=s3://bucket?key=x", "is none of region="), ("b=s3://bucket?endpoint=ftp://x", "endpoint="),
        ("b=s3://bucket?endpoint=http://x/path", "endpoint="), ("b=s3://bucket?style=other", "style="),
        ("b=s3://bucket?credentials=mine", "credentials="),
    ])
    func `An invalid bucket is reported with the reason`(_ setting: String, _ reason: String) async throws {
        let run = try await ServiceProcess.run(["check-config", "--bucket", setting], environment: Self.keys)
        #expect(run.status != .exited(0))
        #expect(run.errors.contains("bucket") && run.errors.contains(reason), "\(run.errors)")
    }

    @Test(arguments: [
        "b=s3://bucket", "b=s3://my.bucket-1/a/b?region=eu-central-1",
        "b=s3://bucket/p?endpoint=https://s3.example:9000&style=virtual",
    ])
    func `A valid bucket is shown as it was given`(_ setting: String) async throws {
        let run = try await ServiceProcess.run(
            ["check-config", "--bucket", setting, "--bucket", "c=s3://other"], environment: Self.keys)
        #expect(run.status == .exited(0), "\(run.errors)")
        #expect(run.output.contains(setting) && run.output.contains("c=s3://other"), "\(run.output)")
        #expect(!(run.output + run.errors).contains("canary"))
    }

    @Test(arguments: [
        "s3://AKIA:canary@bucket/p", "s3://bucket?secret=canary", "s3://bucket?canary", "s3://canary@bucket",
        "s3://bucket?endpoint=https://id:canary@s3.example:9000", "s3://bucket/p?region=eu&token=canary&style=path",
        "https://id:canary@bucket.s3.example/", "s3://bucket/p@canary:x?endpoint=http://canary@x/y",
    ])
    func `A secret in a bucket's URL is never shown`(_ url: String) async throws {
        for arguments in [["--bucket", "b=\(url)"], ["--contents", url], ["--bucket", url]] {
            let run = try await ServiceProcess.run(["check-config"] + arguments, environment: Self.keys)
            let said = run.output + run.errors
            #expect(said.contains("bucket") && !said.contains(url.contains("p@") ? "//canary" : "canary"), "\(said)")
        }
    }

    @Test func `A bucket without credentials prevents the start, with advice`() async throws {
        let folder = TemporaryFolder()
        folder.write(Array("[other]\naws_access_key_id=i\naws_secret_access_key=s\n".utf8), to: "keys")
        for more in [[], ["--bucket-credentials", folder.file("keys")]] {
            let run = try await ServiceProcess.run(
                [
                    "serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", folder.file("data"), "--bucket",
                    "b=s3://bucket",
                ]
                    + more)
            #expect(run.status != .exited(0))
            #expect(run.errors.contains("bucket b has no credentials") && run.errors.contains("[b]"), "\(run.errors)")
        }
        let run = try await ServiceProcess.run(
            [
                "serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", folder.file("data"), "--bucket",
                "b=s3://bucket",
            ]
                + ["--bucket-credentials", folder.file("none")])
        #expect(run.errors.contains(folder.file("none")) && run.errors.contains("cannot be read"), "\(run.errors)")
    }

    @Test func `A bucket of contents is shown, with its faults`() async throws {
        let setting = "s3://my.bucket-1/a/b?region=eu-central-1"
        let run = try await ServiceProcess.run(["check-config", "--contents", setting], environment: Self.keys)
        #expect(run.status == .exited(0), "\(run.errors)")
        #expect(run.output.contains(setting) && !(run.output + run.errors).contains("canary"), "\(run.output)")
        for (arguments, reason) in [
            (["--contents", "x=s3://bucket"], "begins with s3://"),
            (["--contents", "s3://bucket?key=x"], "is none of region="),
            (["--contents", "s3://bucket", "--bucket", "contents=s3://other"], "the name contents is reserved"),
        ] {
            let run = try await ServiceProcess.run(["check-config"] + arguments, environment: Self.keys)
            #expect(run.status != .exited(0) && run.errors.contains(reason), "\(run.errors)")
        }
        let data = TemporaryFolder()
        let bare = try await ServiceProcess.run(
            ["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", data.file("data"), "--contents", "s3://bucket"])
        #expect(bare.status != .exited(0) && bare.errors.contains("[contents]"), "\(bare.errors)")
    }
}
