// A schema as a tree of members.

import { h } from "./dom.js";
import { inline } from "./markdown.js";

const deepest = 5;

/**
 * The members of a schema, with their types, rules and words.
 *
 * @param {import("./description.js").Description} description
 * @param {object} schema
 */
export function schemaTree(description, schema, depth = 0, seen = []) {
  const name = description.nameOf(schema);
  const value = description.resolved(schema) ?? {};
  if (name && seen.includes(name)) return null;
  const within = name ? [...seen, name] : seen;
  const parts = [];
  if (depth === 0 && value.description) parts.push(h("p", {}, inline(value.description)));
  for (const part of value.allOf ?? []) parts.push(schemaTree(description, part, depth, within));
  const choices = (value.oneOf ?? value.anyOf ?? []).filter(({ type }) => type !== "null");
  if (choices.length > 1) {
    parts.push(
      h(
        "ol",
        { class: "choices" },
        choices.map((choice) =>
          h(
            "li",
            {},
            h("span", { class: "type" }, typeOf(description, choice)),
            schemaTree(description, choice, depth + 1, within),
          )
        ),
      ),
    );
  } else if (choices.length === 1) {
    parts.push(schemaTree(description, choices[0], depth, within));
  }
  if (value.items && depth < deepest) parts.push(schemaTree(description, value.items, depth, within));
  if (typeof value.additionalProperties === "object" && depth < deepest) {
    parts.push(schemaTree(description, value.additionalProperties, depth + 1, within));
  }
  const members = Object.entries(value.properties ?? {});
  if (members.length > 0) {
    parts.push(h(
      "ul",
      { class: "members" },
      members.map(([member, type]) => row(description, member, type, value.required ?? [], depth, within)),
    ));
  }
  if (depth === 0 && members.length === 0 && choices.length === 0) {
    parts.push(h("p", { class: "type" }, typeOf(description, value), rules(value)));
  }
  return parts.filter(Boolean);
}

function row(description, name, schema, required, depth, seen) {
  const value = description.resolved(schema) ?? {};
  const inner = depth < deepest ? schemaTree(description, schema, depth + 1, seen) : null;
  return h(
    "li",
    {},
    h(
      "div",
      { class: "member" },
      h("code", {}, name),
      h("span", { class: "type" }, typeOf(description, schema)),
      required.includes(name) && h("span", { class: "required" }, "required"),
      rules(value),
    ),
    value.description && h("p", {}, inline(value.description)),
    inner?.length > 0 && h("details", {}, h("summary", {}, "Members"), inner),
  );
}

/** A type in words: `integer or null`, `list of Task`. */
export function typeOf(description, schema) {
  const name = description.nameOf(schema);
  if (name) return name;
  const value = schema ?? {};
  const choices = value.oneOf ?? value.anyOf;
  if (choices) return choices.map((choice) => typeOf(description, choice)).join(" or ");
  if (value.allOf) {
    return value.allOf.map((part) => typeOf(description, part)).filter((text) => text !== "anything").join(" with ");
  }
  if (value.const !== undefined) return JSON.stringify(value.const);
  if (value.enum) return value.enum.map((word) => (word === null ? "null" : word)).join(" | ");
  const types = [value.type ?? (value.properties ? "object" : "anything")].flat();
  return types.map((type) => (type === "array" ? `list of ${typeOf(description, value.items)}` : type)).join(" or ");
}

/** The constraints of a value. */
function rules(value) {
  const said = [
    value.minimum !== undefined && `from ${value.minimum}`,
    value.maximum !== undefined && `to ${value.maximum}`,
    value.minLength !== undefined && `at least ${value.minLength} long`,
    value.maxLength !== undefined && `at most ${value.maxLength} long`,
    value.minItems !== undefined && `at least ${value.minItems}`,
    value.maxItems !== undefined && `at most ${value.maxItems}`,
    value.default !== undefined && `default ${JSON.stringify(value.default)}`,
  ].filter(Boolean);
  return said.length > 0 && h("span", { class: "rules" }, ` ${said.join(", ")}`);
}
