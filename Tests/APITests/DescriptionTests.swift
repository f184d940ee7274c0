import TestSupport
import Testing

@testable import API

/// `openapi.yaml` keeps to the forms from which client generators produce complete clients.
@Suite struct DescriptionTests {
    private let document: JSON
    private let schema: Schema

    init() throws {
        document = try JSON(parsing: OpenAPI.json.bytes)
        schema = Schema(document: document, isExact: true)
    }

    @Test func `Every enumeration and every object schema with members has a name`() {
        for part in parts where part.isSchema && (part.value.has("enum") || part.value.has("properties")) {
            let isNamed = part.place.dropLast() == ["components", "schemas"]
            #expect(isNamed, "\(part.path) needs a name of its own")
        }
    }

    @Test func `No schema has the name of a type in a client's language`() {
        let taken: Set = [
            "Any", "Array", "Blob", "Body", "Boolean", "Configuration", "Data", "Date", "Error", "File", "Headers",
            "Int",
            "Map", "Object", "Optional", "Protocol", "Range", "Request", "Response", "Result", "Set", "String", "Task",
            "Type", "URL",
        ]
        #expect(taken.intersection(schemas.keys) == [])
        // Python would derive the same variable from both names.
        for (name, schema) in schemas {
            let members = (schema["properties"].object ?? [:]).keys.map { $0.lowercased() }
            #expect(!members.contains(name.lowercased()), "\(name) has a member of its own name")
        }
    }

    @Test func `Enumerations with x-enum-varnames have no default`() {
        for part in parts where part.isSchema && part.value.has("x-enum-varnames") {
            #expect(part.value["x-enum-varnames"].array?.count == part.value["enum"].array?.count, "\(part.path)")
            #expect(!part.value.has("default"), "\(part.path): some generators spell it in another way")
        }
    }

    @Test func `Enumerations whose words are no identifiers have x-enum-varnames`() {
        for (name, schema) in schemas where schema.has("enum") {
            let words = schema["enum"].array ?? []
            let isPlain =
                words.compactMap(\.string).filter { word in
                    word.first?.isLetter == true && word.allSatisfy { $0.isASCII && $0.isLetter || $0.isNumber }
                }.count == words.count
            #expect(isPlain != schema.has("x-enum-varnames"), "\(name): \(words)")
            let names = schema["x-enum-varnames"].array?.compactMap(\.string) ?? []
            #expect(names.allSatisfy { $0.first?.isUppercase == true && $0.allSatisfy { $0.isLetter || $0.isNumber } })
            #expect(Set(names).count == names.count, "\(name)")
        }
    }

    @Test func `Names end in Identifier for Apple's and chosen names, in Id for opaque ones`() {
        var names: Set<String> = []
        for schema in schemas.values { names.formUnion((schema["properties"].object ?? [:]).keys) }
        for part in parts where !part.isSchema && ["path", "query"].contains(part.value["in"].string) {
            names.insert(part.value["name"].string ?? "")
        }
        #expect(names.count > 250)
        for name in names {
            let isCamelCase =
                name.first?.isLowercase == true && name.allSatisfy { $0.isASCII && $0.isLetter || $0.isNumber }
            #expect(isCamelCase, "\(name)")
        }
        func ending(_ ends: String...) -> Set<String> { names.filter { name in ends.contains { name.hasSuffix($0) } } }
        #expect(
            ending("dentifier", "dentifiers").subtracting([
                "identifier", "sessionIdentifier", "taskIdentifier", "taskIdentifiers", "firstTaskIdentifier",
                "lastTaskIdentifier",
                // These names are older than the rule.
                "keyIdentifier", "credentialIdentifier",
            ]) == [])
        #expect(
            ending("Id", "Ids", "ID", "IDs", "id").subtracting([
                "id", "launchId", "questionId", "bodyId", "versionId", "clientTaskId",
            ]) == [])
    }

    @Test func `Null is a choice of its own, never a word`() {
        for part in parts where part.isSchema && part.value.has("enum") {
            #expect(part.value["enum"].array?.contains(.null) == false, "\(part.path)")
            #expect(part.value["type"].string != nil, "\(part.path) does not say of which type its words are")
        }
        for part in parts where part.isSchema && part.value.has("const") {
            #expect(part.value["const"].string != nil, "\(part.path)")
        }
    }

    @Test func `The choices of a oneOf differ by a discriminator or by their type in JSON`() {
        for part in parts where part.isSchema {
            #expect(!part.value.has("anyOf"), "\(part.path): few generators know anyOf")
            #expect(
                part.value["allOf"].array?.count != 1, "\(part.path): an allOf of one is that one for some generators")
            guard let choices = part.value["oneOf"].array else { continue }
            if part.value.has("discriminator") {
                let name = part.value["discriminator"]["propertyName"].string ?? ""
                let mapping = part.value["discriminator"]["mapping"].object ?? [:]
                #expect(Set(mapping.values) == Set(choices.map { $0["$ref"] }), "\(part.path)")
                for (word, reference) in mapping {
                    let choice = schema.resolve(reference.string ?? "")
                    #expect(choice["properties"][name]["const"] == .string(word), "\(part.path): \(word)")
                    #expect(choice["required"].array?.contains(.string(name)) == true, "\(part.path): \(word)")
                }
            } else {
                let kinds = choices.flatMap { types(of: $0) }
                #expect(!kinds.isEmpty && Set(kinds).count == kinds.count, "\(part.path): \(kinds)")
            }
        }
    }

    @Test func `A nullable schema has no conditions, which would hide its type from generators`() {
        for part in parts where part.isSchema && part.value["oneOf"].array?.contains(["type": "null"]) == true {
            for choice in part.value["oneOf"].array ?? [] {
                let conditions = ["if", "not", "anyOf"].filter { schema.resolved(choice).has($0) }
                #expect(conditions == [], "\(part.path)")
            }
        }
    }

    @Test func `Every body has an example, and each example is valid`() {
        var count = 0
        for part in parts where part.place.dropLast().last == "content" {
            let named = part.value["examples"].object?.values.map { $0["value"] } ?? []
            let examples = part.value.has("example") ? [part.value["example"]] : Array(named)
            #expect(!examples.isEmpty, "\(part.path) has no example")
            count += examples.count
            for example in examples where part.place.last?.hasSuffix("json") == true && part.isJSON {
                #expect(schema.faults(of: example, part.value["schema"]) == [], "\(part.path)")
            }
        }
        #expect(count > 80)
    }

    @Test func `Links lead to existing routes with existing parameters`() {
        var targets: Set<String> = []
        for part in parts where part.place.dropLast().last == "links" {
            let target = part.value["operationId"].string ?? ""
            targets.insert(target)
            guard let operation = operations[target] else {
                Issue.record("\(part.path) leads nowhere")
                continue
            }
            let given = Set((part.value["parameters"].object ?? [:]).keys)
            #expect(given.isSubset(of: operation.parameters), "\(part.path)")
            #expect(given.isSuperset(of: operation.pathParameters), "\(part.path)")
        }
        let unreached = operations.filter { !$0.value.pathParameters.isEmpty && !targets.contains($0.key) }
        #expect(unreached.keys.sorted() == [], "no link leads to these")
    }

    @Test func `Responses describe their header fields of rate limits and of replays`() {
        for (name, operation) in operations {
            for (status, response) in operation.responses {
                var owed: Set<String> = []
                // Requests are not counted before their key and their route are known.
                if !operation.isOpen, status != "401", status != "414" { owed = ["RateLimit-Policy", "RateLimit"] }
                if operation.parameters.contains("Idempotency-Key"), status < "400" {
                    owed.insert("Idempotency-Replayed")
                }
                let described = Set((schema.resolved(response)["headers"].object ?? [:]).keys)
                #expect(owed.subtracting(described) == [], "\(name) \(status)")
            }
        }
    }

    @Test func `Pages and contents describe their own header fields`() {
        for path in ["/", "/docs", "/page/{file}", "/problems/{code}"] {
            let described = document["paths"][path]["get"]["responses"]["200"]["headers"]
            for (name, _) in PageFiles.headers { #expect(described.has(name), "\(path): \(name)") }
        }
        for name in ["getContent", "getSetFile"] {
            let unchanged = schema.resolved(operations[name]?.responses["304"] ?? .null)
            #expect(unchanged["headers"].has("Repr-Digest"), "\(name)")
        }
    }

    @Test func `A generated client has no methods for the calls that the service makes`() {
        let webhooks = document["webhooks"].object ?? [:]
        #expect(!webhooks.isEmpty && webhooks.values.allSatisfy { $0["post"]["x-internal"] == true })
    }

    @Test func `The server URL of the description is relative to the description`() {
        #expect(document["servers"].array?.map { $0["url"] } == ["/"])
    }

    @Test func `Every member, parameter and header field has a description`() {
        var count = 0
        for (name, schema) in schemas {
            for (member, value) in schema["properties"].object ?? [:] {
                count += 1
                #expect(value["description"].string?.isEmpty == false, "\(name).\(member)")
            }
        }
        #expect(count > 600)
        for part in parts where part.value["in"].string != nil && !part.isSchema {
            #expect(part.value["description"].string?.isEmpty == false, "\(part.path)")
        }
        for (name, header) in document["components"]["headers"].object ?? [:] {
            #expect(header["description"].string?.isEmpty == false, "\(name)")
        }
    }

    @Test func `Schemas of requests are closed to unknown members, those of responses and events are open to new ones`()
    {
        let (sent, received) = (reachable(.request), reachable(.response))
        #expect(sent.count > 40 && received.count > 80)
        for name in sent.union(received) {
            guard let schema = schemas[name], schema.has("properties") else { continue }
            let isClosed = schema["additionalProperties"] == false
            #expect(isClosed != received.contains(name), "\(name) is \(isClosed ? "closed" : "open")")
            #expect(sent.contains(name) != received.contains(name), "\(name) needs a schema for each direction")
        }
    }

    @Test func `Enumerations in responses are described as open`() {
        let (sent, received) = (reachable(.request), reachable(.response))
        for (name, schema) in schemas where schema.has("enum") && received.contains(name) {
            let rest = sent.contains(name) ? " to responses; requests accept only" : "; a client ignores"
            #expect(schema["description"].string?.contains("Further values may be added\(rest)") == true, "\(name)")
        }
    }

    @Test func `A response has every member of a configuration or of conditions that can be requested`() {
        let pairs = [
            "SessionConfiguration": "EffectiveSessionConfiguration",
            "RetryPolicySettings": "EffectiveRetryPolicySettings",
            "Proxy": "EffectiveProxy", "Destination": "TaskDestination", "Pieces": "TaskPieces",
            "AppLimitsChange": "AppLimits", "ConditionsPut": "Conditions", "NetworkConditionsPut": "NetworkConditions",
            "PowerConditionsPut": "PowerConditions", "TimeWindowPut": "TimeWindow",
            "ProtectionSpaceCreation": "ProtectionSpace", "SetDestination": "FileSetDestination",
            "SetSource": "SetVersionSource",
        ]
        for (request, response) in pairs {
            let members = [request, response].map { Set((schemas[$0]?["properties"].object ?? [:]).keys) }
            #expect(!members[0].isEmpty && members[0] == members[1], "\(request) and \(response)")
        }
    }

    @Test func `The schemas state which members exclude or require one another`() {
        func isValid(_ name: String, _ value: JSON) -> Bool { schema.faults(of: value, schemas[name] ?? false) == [] }
        let request: JSON = ["url": "https://example.com/"]
        let tasks: [(JSON, Bool)] = [
            (["kind": "download", "request": request], true), (["kind": "download"], false),
            (["kind": "download", "request": request, "body": ["text": ""]], false),
            (["kind": "upload", "request": request, "body": ["text": ""]], true),
            (["kind": "upload", "request": request], false), (["kind": "download", "resumeData": "x"], true),
            (["kind": "upload", "resumeData": "x"], false),
            (["kind": "download", "resumeData": "x", "request": request], false),
        ]
        for (task, expected) in tasks { #expect(isValid("TaskCreation", task) == expected, "\(task)") }
        let bodies: [(JSON, Bool)] = [
            ([:], false), (["json": nil], true), (["root": "r", "path": "p"], true), (["root": "r"], false),
            (["path": "p"], false), (["text": "", "id": "x"], false), (["root": "r", "path": "p", "task": 1], false),
        ]
        for (body, expected) in bodies { #expect(isValid("BodySource", body) == expected, "\(body)") }
        let credentials: [(JSON, Bool)] = [
            (["user": "u", "password": "p"], true), (["user": "u"], false), (["password": "p"], false),
            (["token": "t", "persistence": "none"], true), (["persistence": "none"], false), ([:], false),
            (["token": "t", "user": "u", "password": "p"], false), (["certificate": "c", "key": "k"], true),
            (["certificate": "c"], false), (["trustPublicKey": "k", "token": "t"], false),
        ]
        for (credential, expected) in credentials {
            #expect(isValid("Credential", credential) == expected, "\(credential)")
        }
        let answers: [(JSON, Bool)] = [
            (["disposition": "useCredential", "credential": ["token": "t"]], true),
            (["disposition": "useCredential"], false), (["disposition": "useNewRequest", "request": request], true),
            (["disposition": "useNewRequest"], false), (["disposition": "cancel"], true),
            (["disposition": "cancel", "request": request], false),
            (["disposition": "cancel", "credential": ["token": "t"]], false),
        ]
        for (answer, expected) in answers { #expect(isValid("Answer", answer) == expected, "\(answer)") }
        let sources: [(JSON, Bool)] = [
            (["kind": "huggingface", "repository": "o/n", "allow": ["*"]], true), (["kind": "huggingface"], false),
            (["kind": "huggingface", "repository": "o/n", "url": "https://h/"], false),
            (["kind": "checksums", "url": "https://h/", "base": "https://h/"], true), (["kind": "checksums"], false),
            (["kind": "manifest", "url": "https://h/", "base": "https://h/"], false),
        ]
        for (source, expected) in sources { #expect(isValid("SetSource", source) == expected, "\(source)") }
        let file: JSON = ["path": "a", "request": request]
        let source: JSON = ["kind": "manifest", "url": "https://h/"]
        let versions: [(JSON, Bool)] = [
            (["session": "s", "files": [file]], true), (["session": "s", "source": source], true),
            (["session": "s"], false), (["session": "s", "files": [file], "source": source], false),
            (["session": "s", "files": []], false),
        ]
        for (version, expected) in versions {
            #expect(isValid("SetVersionCreation", version) == expected, "\(version)")
        }
        #expect(isValid("LaunchCompletion", ["result": "newData"]) && isValid("LaunchCompletion", ["through": 1]))
        #expect(!isValid("LaunchCompletion", ["result": "newData", "through": 1]))
    }
}

extension DescriptionTests {
    /// A part of the document, with its path.
    private struct Part {
        let place: [String]
        let value: JSON
        let isSchema: Bool

        var path: String { place.joined(separator: "/") }
        var isJSON: Bool { place.last != "application/x-ndjson" }
    }

    private struct Operation {
        let parameters: Set<String>
        let pathParameters: Set<String>
        let responses: [String: JSON]
        let isOpen: Bool
    }

    private var schemas: [String: JSON] { document["components"]["schemas"].object ?? [:] }

    /// All objects of the document except the examples and the conditions of schemas.
    private var parts: [Part] {
        var found: [Part] = []
        func walk(_ value: JSON, _ place: [String], isSchema: Bool) {
            for (index, item) in (value.array ?? []).enumerated() {
                walk(item, place + ["\(index)"], isSchema: isSchema)
            }
            guard let members = value.object else { return }
            found.append(Part(place: place, value: value, isSchema: isSchema))
            for (name, member) in members {
                if name == "example" || name == "examples" { continue }
                if isSchema, ["if", "then", "else", "not", "dependentSchemas", "propertyNames"].contains(name) {
                    continue
                }
                if isSchema, name == "properties" {
                    for (name, member) in member.object ?? [:] {
                        walk(member, place + ["properties", name], isSchema: true)
                    }
                } else {
                    walk(
                        member, place + [name],
                        isSchema: isSchema || name == "schema" || place == ["components", "schemas"])
                }
            }
        }
        walk(document, [], isSchema: false)
        return found
    }

    private enum Direction { case request, response }

    /// The names of the schemas in JSON and queries of requests, or of responses and webhooks. A receiver's response to
    /// a webhook is left out, because it is read leniently.
    private func reachable(_ direction: Direction) -> Set<String> {
        var found: Set<String> = direction == .request ? ["TaskCreation"] : ["LineResult"]
        func walk(_ value: JSON) {
            for item in value.array ?? [] { walk(item) }
            for (name, member) in value.object ?? [:] where !["example", "examples", "mapping", "links"].contains(name)
            {
                if name == "$ref", let reference = member.string {
                    let last = reference.split(separator: "/").last.map(String.init) ?? ""
                    if !reference.contains("/schemas/") || found.insert(last).inserted {
                        walk(schema.resolve(reference))
                    }
                } else {
                    walk(member)
                }
            }
        }
        for name in found { walk(schemas[name] ?? .null) }
        for operation in (document["paths"].object ?? [:]).values.flatMap({ Array(($0.object ?? [:]).values) }) {
            switch direction {
            case .request:
                walk(operation["parameters"])
                walk(operation["requestBody"])
            case .response:
                for response in (operation["responses"].object ?? [:]).values {
                    walk(schema.resolved(response)["content"])
                }
            }
        }
        if direction == .response {
            for webhook in (document["webhooks"].object ?? [:]).values { walk(webhook["post"]["requestBody"]) }
        }
        return found
    }

    /// The JSON types of the values of a schema.
    private func types(of choice: JSON) -> [String] {
        let resolved = schema.resolved(choice)
        if let choices = resolved["oneOf"].array { return choices.flatMap { types(of: $0) } }
        let names = resolved["type"].array?.compactMap(\.string) ?? [resolved["type"].string ?? "object"]
        return names.map { $0 == "integer" ? "number" : $0 }
    }

    private var operations: [String: Operation] {
        var found: [String: Operation] = [:]
        for item in (document["paths"].object ?? [:]).values {
            for operation in (item.object ?? [:]).values {
                guard let identifier = operation["operationId"].string else { continue }
                let all = (item["parameters"].array ?? []) + (operation["parameters"].array ?? [])
                let resolved = all.map { schema.resolved($0) }
                found[identifier] = Operation(
                    parameters: Set(resolved.compactMap { $0["name"].string }),
                    pathParameters: Set(resolved.filter { $0["in"] == "path" }.compactMap { $0["name"].string }),
                    responses: operation["responses"].object ?? [:], isOpen: operation["security"] == [])
            }
        }
        return found
    }
}
