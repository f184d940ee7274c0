import HTTPServer
import Wire

extension APIServer {
    /// The index of the API, and the meaning of each problem. Both hold no data and need no key.
    var indexRoutes: [Route] {
        [
            route("GET", "/v1", .open) { .json($0.server.index) },
            route("GET", "/problems/{code}", .open, produces: ["text/markdown", "text/html"]) { try $0.problemPage() },
        ]
    }

    private var index: ServiceIndex {
        ServiceIndex(
            resources: [
                ("app", "/v1/app"), ("apps", "/v1/apps"), ("backgroundRefresh", "/v1/app/background-refresh"),
                ("bodies", "/v1/bodies"), ("conditions", "/v1/system/conditions"), ("credentials", "/v1/credentials"),
                ("launches", "/v1/launches"), ("nodes", "/v1/nodes"), ("questions", "/v1/questions"),
                ("sessions", "/v1/sessions"), ("sets", "/v1/sets"), ("tasks", "/v1/tasks"),
            ],
            documentation: [("openapi", "/openapi.yaml"), ("problem", "/problems/{code}")]
                + (settings.servesPage ? [("reference", "/docs")] : []))
    }
}

extension Call {
    fileprivate func problemPage() throws -> HTTPResponse {
        let code = parameter("code")
        guard let page = ProblemPages.all[code] else {
            throw Problem(.notFound, "There is no problem code \"\(code)\".")
        }
        let isHTML = accepted == "text/html"
        return HTTPResponse(
            status: 200,
            headers: [("Content-Type", accepted + "; charset=utf-8"), ("Vary", "Accept")]
                + (isHTML ? PageFiles.headers : []),
            body: .bytes(Array((isHTML ? page.html : page.markdown).utf8)))
    }
}
