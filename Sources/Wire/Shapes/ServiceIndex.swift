/// The response to `GET /v1`: the paths of all other resources, by name.
package struct ServiceIndex: JSONWritable {
    /// The paths of the API's resources.
    package var resources: [(name: String, path: String)]
    /// The paths of descriptions for programs and people.
    package var documentation: [(name: String, path: String)]

    package init(resources: [(name: String, path: String)], documentation: [(name: String, path: String)]) {
        self.resources = resources
        self.documentation = documentation
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("name", "urlsessiond")
            writer.member("version", Release.version)
            for (name, links) in [("resources", resources), ("documentation", documentation)] {
                writer.member(name, JSON.object(links.map { .init($0.name, .string($0.path)) }))
            }
        }
    }
}
