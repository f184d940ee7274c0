/// The version of the package: of its programs, and of the API that `openapi.yaml` describes.
package enum Release {
    package static let version = "0.1.0"
}
