import Formats

/// The state of a set's version. Total: an event without effect leaves the state as it is.
package enum SetVersionState: String, Word, CaseIterable {
    case expanding, fetching, verifying, publishing, published, failed, superseded, cancelled

    package enum Event: Hashable, Sendable, CaseIterable {
        /// The list of files is complete.
        case listed
        /// Each file was fetched or reused.
        case fetched
        /// The list could not be made, or a file failed or differs from its digest or length.
        case failed
        /// Digests and lengths hold.
        case verified
        /// Readers see the version.
        case published
        /// A newer version was published before, or another version has the same commit.
        case overtaken
        case cancel
        /// Failed files are fetched again, and a missing list is made again.
        case retryFiles, retryList
    }

    package func after(_ event: Event) -> SetVersionState {
        switch (self, event) {
        case (.expanding, .listed): .fetching
        case (.fetching, .fetched): .verifying
        case (.verifying, .verified): .publishing
        case (.publishing, .published): .published
        case (.expanding, .failed), (.fetching, .failed), (.verifying, .failed), (.publishing, .failed): .failed
        case (.expanding, .overtaken), (.verifying, .overtaken), (.publishing, .overtaken): .superseded
        case (.expanding, .cancel), (.fetching, .cancel), (.verifying, .cancel), (.publishing, .cancel): .cancelled
        case (.failed, .retryFiles): .fetching
        case (.failed, .retryList): .expanding
        default: self
        }
    }

    /// Whether the version may still be published.
    package var isInFlight: Bool {
        switch self {
        case .expanding, .fetching, .verifying, .publishing: true
        case .published, .failed, .superseded, .cancelled: false
        }
    }
}
