/// What this package is released as: its programs, and the API that `openapi.yaml` describes.
package enum Release {
    package static let version = "0.1.0"
}
