// The OpenAPI document, read for the reference.

const methods = ["get", "post", "put", "patch", "delete", "head"];

/** The service's description of itself. */
export class Description {
  constructor(document) {
    this.document = document;
    this.title = document.info.title;
    this.version = document.info.version;
    this.text = document.info.description ?? "";
    this.schemas = Object.entries(document.components.schemas);
    this.operations = Object.entries(document.paths).flatMap(([path, item]) => this.operationsOf(path, item));
    this.webhooks = Object.entries(document.webhooks ?? {}).flatMap(([path, item]) => this.operationsOf(path, item));
    this.tags = document.tags.map(({ name, description }) => ({
      name,
      text: description,
      operations: this.operations.filter(({ tags }) => tags.includes(name)),
    }));
  }

  operationsOf(path, item) {
    return methods.filter((method) => item[method]).map((method) => {
      const operation = item[method];
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((parameter) =>
        this.resolved(parameter)
      );
      return {
        path,
        method: method.toUpperCase(),
        identifier: operation.operationId,
        summary: operation.summary ?? "",
        text: operation.description ?? "",
        tags: operation.tags ?? [],
        parameters,
        body: operation.requestBody && this.resolved(operation.requestBody),
        responses: Object.entries(operation.responses ?? {}).map((
          [status, response],
        ) => [status, this.resolved(response)]),
        security: operation.security ?? this.document.security ?? [],
      };
    });
  }

  /** The target of a reference, with the members beside it; other values unchanged. */
  resolved(value) {
    if (!value?.$ref) return value;
    const { $ref, ...beside } = value;
    const found = $ref.slice(2).split("/").reduce(
      (place, part) => place?.[part.replaceAll("~1", "/").replaceAll("~0", "~")],
      this.document,
    );
    return { ...this.resolved(found), ...beside };
  }

  /** The name of the schema that a reference names. */
  nameOf(schema) {
    return schema?.$ref?.split("/").pop();
  }

  /** The permitted callers of an operation, in words. */
  audience({ security }) {
    if (security.length === 0) return "No key is needed.";
    return security.map((scheme) =>
      Object.entries(scheme).map(([name, scopes]) =>
        name === "adminKey"
          ? "the operator’s key"
          : `an app’s key${scopes.length ? ` with the scope ${scopes.join(" and ")}` : ""}`
      ).join(" and ")
    ).join(", or ").replace(/^./, (first) => first.toUpperCase()) + ".";
  }
}

/** An example of a schema: its own, or composed of the examples of its parts. */
export function exampleOf(description, schema, depth = 0) {
  const value = description.resolved(schema) ?? {};
  if (value.example !== undefined) return value.example;
  if (value.examples?.length) return value.examples[0];
  if (value.const !== undefined) return value.const;
  if (value.default !== undefined) return value.default;
  if (value.enum) return value.enum[0];
  if (depth > 6) return null;
  const alternatives = value.oneOf ?? value.anyOf;
  if (alternatives) {
    return exampleOf(
      description,
      alternatives.find((choice) => choice.type !== "null") ?? alternatives[0],
      depth + 1,
    );
  }
  if (value.allOf) {
    return Object.assign(
      {},
      ...value.allOf.map((part) => exampleOf(description, part, depth + 1)).filter((part) => typeof part === "object"),
      ownMembers(description, value, depth),
    );
  }
  const type = Array.isArray(value.type) ? value.type[0] : value.type;
  switch (type) {
    case "object":
      return ownMembers(description, value, depth);
    case "array":
      return value.items ? [exampleOf(description, value.items, depth + 1)] : [];
    case "integer":
    case "number":
      return value.minimum ?? 0;
    case "boolean":
      return false;
    case "string":
      return value.format === "date-time" ? "2026-12-01T00:00:00.000Z" : "text";
    default:
      return value.properties ? ownMembers(description, value, depth) : null;
  }
}

function ownMembers(description, schema, depth) {
  const required = new Set(schema.required ?? []);
  const entries = Object.entries(schema.properties ?? {}).filter(([name]) => required.size === 0 || required.has(name));
  return Object.fromEntries(entries.map(([name, member]) => [name, exampleOf(description, member, depth + 1)]));
}
