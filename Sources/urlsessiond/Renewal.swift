import API
import Base
import HTTPServer

/// The effect of `SIGHUP`: the settings are read again and, if they have no faults, log level, certificate, admin key
/// and the buckets' credentials are replaced. An unusable one is refused, and the one before stays.
struct Renewal: Sendable {
    /// Reads the current settings.
    let reread: @Sendable () throws(Configuration.Faults) -> Configuration
    let api: APIServer
    let server: HTTPServer
    let buckets: ConfiguredBuckets
    let log: Log

    func perform() {
        do throws(Configuration.Faults) {
            let configuration = try reread()
            log.show(from: configuration.logLevel)
            renewCertificate(configuration)
            renewAdminKey(configuration)
            renewBuckets(configuration)
        } catch {
            log.error(
                "the settings have faults: no file was read again", ("error", error.lines.joined(separator: "; ")))
        }
    }

    private func renewCertificate(_ configuration: Configuration) {
        do throws(Serve.Failure) {
            guard let certificate = try Serve.certificate(configuration) else { return }
            server.present(certificate)
            log.info("new connections use the certificate that was read again")
        } catch {
            log.error("the new certificate is invalid: the previous certificate stays in use", ("error", error.text))
        }
    }

    private func renewBuckets(_ configuration: Configuration) {
        guard !buckets.isEmpty else { return }
        do throws(Serve.Failure) {
            try buckets.renew(configuration)
            log.info("the buckets' credentials were read again")
        } catch {
            log.error(
                "the buckets' new credentials are invalid: the previous credentials stay in use", ("error", error.text))
        }
    }

    private func renewAdminKey(_ configuration: Configuration) {
        do throws(Serve.Failure) {
            let key = try StartupKeys.adminKey(configuration)
            api.adminKeyChanged(hash: Digest.of(Array(key.utf8)))
            log.info("the operator's key was read again")
        } catch {
            log.error("the new operator's key is invalid: the previous key stays in use", ("error", error.text))
        }
    }
}
