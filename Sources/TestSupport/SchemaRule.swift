/// The keywords of one schema, read once: a response has thousands of values, and text of a document is slow to look up.
final class SchemaRule: Sendable {
    /// `false` for the schema `false`.
    let isPossible: Bool
    let reference: String?
    let types: [Kind]?
    let values: [JSON]?
    let constant: JSON?
    let isTime: Bool
    let numbers: ClosedRange<Double>

    let required: [String]
    let numberOfMembers: ClosedRange<Int>
    let dependents: [String: SchemaRule]
    let names: SchemaRule?
    let properties: [String: SchemaRule]?
    let otherProperties: SchemaRule?
    let numberOfItems: ClosedRange<Int>
    let items: SchemaRule?

    let all: [SchemaRule]
    let choices: [SchemaRule]
    /// Whether exactly one of the choices must fit.
    let isExclusive: Bool
    let excluded: SchemaRule?
    let condition: SchemaRule?
    let consequence: SchemaRule?
    let alternative: SchemaRule?

    /// Whether the schema is only a condition of another one, such as the `if` beside `properties`: it has no `type`.
    var isCondition: Bool { types == nil }

    init(_ schema: JSON) {
        func rule(_ name: String) -> SchemaRule? { schema.object?[name].map { SchemaRule($0) } }
        func rules(_ name: String) -> [String: SchemaRule]? { schema[name].object?.mapValues { SchemaRule($0) } }
        func list(_ name: String) -> [SchemaRule] { (schema[name].array ?? []).map { SchemaRule($0) } }

        isPossible = schema.bool ?? true
        reference = schema["$ref"].string
        types = schema.object?["type"].map { type in (type.array ?? [type]).map { Kind($0) } }
        values = schema["enum"].array
        constant = schema.object?["const"]
        isTime = schema["format"] == "date-time"
        numbers = (schema["minimum"].double ?? -.infinity)...(schema["maximum"].double ?? .infinity)
        required = (schema["required"].array ?? []).compactMap(\.string)
        numberOfMembers = (schema["minProperties"].int ?? 0)...(schema["maxProperties"].int ?? .max)
        dependents = rules("dependentSchemas") ?? [:]
        names = rule("propertyNames")
        properties = rules("properties")
        otherProperties = rule("additionalProperties")
        numberOfItems = (schema["minItems"].int ?? 0)...(schema["maxItems"].int ?? .max)
        items = rule("items")
        all = list("allOf")
        isExclusive = schema.has("oneOf")
        choices = list(isExclusive ? "oneOf" : "anyOf")
        excluded = rule("not")
        condition = rule("if")
        consequence = rule("then")
        alternative = rule("else")
    }

    /// A value of the keyword `type`.
    enum Kind: String {
        case null, boolean, string, array, object, integer, number
        /// A type that JSON Schema does not have, which no value is of.
        case unknown

        init(_ name: JSON) { self = name.string.flatMap { Kind(rawValue: $0) } ?? .unknown }

        func includes(_ value: JSON) -> Bool {
            switch (self, value) {
            case (.null, .null), (.boolean, .bool), (.string, .string), (.array, .array), (.object, .object): true
            case (.integer, _): value.int != nil
            case (.number, _): value.double != nil
            default: false
            }
        }
    }
}
