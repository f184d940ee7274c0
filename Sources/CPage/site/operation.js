// One route: its request, its responses, an example for a shell, and a form that sends a request.

import { exampleOf } from "./description.js";
import { h } from "./dom.js";
import { inline, markdown } from "./markdown.js";
import { copyButton } from "./parts.js";
import { schemaTree, typeOf } from "./schema.js";
import { curl, tryIt } from "./tryit.js";

/** The content of an opened route. */
export function operationBody(description, operation) {
  const isWebhook = !operation.path.startsWith("/");
  return h(
    "div",
    { class: "operation-body" },
    h("div", {}, markdown(operation.text)),
    !isWebhook && h("p", { class: "muted" }, description.audience(operation)),
    operation.parameters.length > 0 && [h("h3", {}, "Parameters"), parameters(description, operation)],
    operation.body && requestBody(description, operation.body),
    h("h3", {}, "Answers"),
    answers(description, operation),
    !isWebhook &&
      [
        h("h3", {}, "From a shell"),
        shell(description, operation),
        h("h3", {}, "Try it"),
        tryIt(description, operation),
      ],
  );
}

function parameters(description, { parameters: list }) {
  return h(
    "ul",
    { class: "members" },
    list.map((parameter) =>
      h(
        "li",
        {},
        h(
          "div",
          { class: "member" },
          h("code", {}, parameter.name),
          h("span", { class: "type" }, `${typeOf(description, parameter.schema)}, in the ${parameter.in}`),
          parameter.required && h("span", { class: "required" }, "required"),
          description.resolved(parameter.schema)?.default !== undefined &&
            h("span", { class: "rules" }, `default ${JSON.stringify(description.resolved(parameter.schema).default)}`),
        ),
        parameter.description && h("p", {}, inline(parameter.description)),
      )
    ),
  );
}

function requestBody(description, body) {
  return [
    h("h3", {}, "Body", body.required ? "" : ", optional"),
    body.description && h("p", {}, inline(body.description)),
    Object.entries(body.content).map(([type, content]) => [
      h("p", { class: "muted" }, h("code", {}, type)),
      content.schema && schemaTree(description, content.schema),
      examples(description, type, content),
    ]),
  ];
}

/** Examples of a content: its own, or a composed one. */
export function examplesOf(description, content) {
  if (content.examples) {
    return Object.entries(content.examples).map(([name, example]) => [name, description.resolved(example).value]);
  }
  if (content.example !== undefined) return [["", content.example]];
  const made = content.schema && exampleOf(description, content.schema);
  return made === undefined || made === null ? [] : [["", made]];
}

/** An example as text. */
export function textOf(example) {
  return typeof example === "string" ? example : JSON.stringify(example, null, 2);
}

function examples(description, type, content) {
  return examplesOf(description, content).map(([name, example]) =>
    h(
      "figure",
      { class: "example" },
      h("figcaption", {}, name ? `Example: ${name}` : "Example", copyButton(textOf(example), "example")),
      h("pre", { tabindex: 0 }, textOf(example)),
    )
  );
}

function answers(description, operation) {
  return h(
    "ul",
    { class: "answers" },
    operation.responses.map(([status, response]) => {
      const contents = Object.entries(response.content ?? {});
      const isProblem = contents.some(([type]) => type.includes("problem"));
      const head = [
        h("b", { class: `status s${status[0]}` }, status),
        h("span", {}, inline(response.description ?? "")),
      ];
      if (isProblem || contents.length === 0) return h("li", { class: "answer" }, head);
      return h(
        "li",
        {},
        h(
          "details",
          {},
          h("summary", { class: "answer" }, head),
          contents.map(([type, content]) => [
            h("p", { class: "muted" }, h("code", {}, type)),
            content.schema && schemaTree(description, content.schema),
            examples(description, type, content),
          ]),
        ),
      );
    }),
  );
}

function shell(description, operation) {
  const text = curl(description, operation, { body: firstBody(description, operation) });
  return h(
    "figure",
    { class: "example" },
    h("figcaption", {}, "curl", copyButton(text, "command")),
    h("pre", { tabindex: 0 }, text),
  );
}

/** The first example of a body in JSON, else of any. */
export function firstBody(description, { body }) {
  if (!body) return undefined;
  const [type, content] = Object.entries(body.content).find(([name]) => name === "application/json") ??
    Object.entries(body.content)[0];
  const example = examplesOf(description, content)[0]?.[1];
  return { type, text: example === undefined ? "" : textOf(example) };
}
