// Requests to the service from its reference.

import { Problem, send } from "./api.js";
import { exampleOf } from "./description.js";
import { h, render } from "./dom.js";
import { holderOf, keyOf } from "./keys.js";
import { firstBody } from "./operation.js";
import { field } from "./parts.js";
import { openKeys } from "./signin.js";

const longestShown = 200_000;

/** A request as a command for a shell. */
export function curl(description, operation, { values = {}, body } = {}) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = [
    `curl -sS${operation.method === "GET" ? "" : ` -X ${operation.method}`} ${
      quote(location.origin + target(description, operation, values))
    }`,
  ];
  if (operation.security.length > 0) lines.push(`-H "Authorization: Bearer $KEY"`);
  if (body?.text) {
    lines.push(
      `-H ${quote(`Content-Type: ${body.type}`)}`,
      `-d ${quote(body.type.includes("json") && !body.type.includes("ndjson") ? compact(body.text) : body.text)}`,
    );
  }
  return lines.join(" \\\n  ");
}

function compact(text) {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

function given(description, parameter) {
  const example = parameter.example ?? exampleOf(description, parameter.schema);
  return parameter.required && example !== undefined && example !== null ? String(example) : "";
}

function target(description, operation, values) {
  const query = new URLSearchParams();
  let path = operation.path;
  for (const parameter of operation.parameters) {
    const value = values[parameter.name] ?? given(description, parameter);
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(value));
    else if (parameter.in === "query" && value !== "") query.set(parameter.name, value);
  }
  // Path parameters without a description.
  path = path.replace(/\{(\w+)\}/g, (whole, name) => (values[name] ? encodeURIComponent(values[name]) : "1"));
  return path + (query.size ? `?${query}` : "");
}

/** The holder of a request: the audience of the first key that fits. */
function audienceOf({ security }) {
  if (security.length === 0) return "public";
  return security.some((scheme) => "adminKey" in scheme) &&
      !(security.some((scheme) => "appKey" in scheme) && keyOf("app"))
    ? "operator"
    : "app";
}

/** The form that sends a request, and the response. */
export function tryIt(description, operation) {
  const fields = operation.parameters.filter((parameter) => parameter.in !== "cookie" && parameter.name !== "Accept");
  const body = firstBody(description, operation);
  const output = h("div", { class: "output", "aria-live": "polite" });
  const inputs = fields.map((parameter) => [
    parameter,
    h("input", {
      name: parameter.name,
      id: `${operation.identifier}-${parameter.name}`,
      autocomplete: "off",
      spellcheck: "false",
      required: parameter.required,
      value: parameter.in === "header" ? "" : given(description, parameter),
    }),
  ]);
  const text = body &&
    h("textarea", {
      id: `${operation.identifier}-body`,
      rows: Math.min(14, body.text.split("\n").length + 1),
      spellcheck: "false",
      value: body.text,
    });
  const submit = h("button", { type: "submit", class: "primary" }, "Send");
  return h(
    "form",
    {
      class: "try",
      on: {
        submit: async (event) => {
          event.preventDefault();
          const audience = audienceOf(operation);
          if (audience !== "public" && !keyOf(audience)) return openKeys();
          submit.setAttribute("aria-busy", "true");
          const values = Object.fromEntries(inputs.map(([parameter, input]) => [parameter.name, input.value]));
          const headers = Object.fromEntries(
            fields.filter((parameter) => parameter.in === "header" && values[parameter.name]).map((
              { name },
            ) => [name, values[name]]),
          );
          const begin = performance.now();
          try {
            const content = text?.value.trim() ? text.value : undefined;
            if (content !== undefined) headers["Content-Type"] = body.type;
            const response = await send(operation.method, target(description, operation, values), {
              audience,
              headers,
              body: content,
            });
            render(
              output,
              await answer(response.status, response.headers, begin, () => response.text()),
            );
          } catch (error) {
            if (!(error instanceof Problem)) throw error;
            render(
              output,
              await answer(error.status, new Headers(), begin, async () => JSON.stringify(error.fields, null, 2)),
            );
          } finally {
            submit.removeAttribute("aria-busy");
          }
        },
      },
    },
    h("div", { class: "try-fields" }, inputs.map(([parameter, input]) => field(parameter.name, input))),
    text && field(`Body, ${body.type}`, text),
    h(
      "div",
      { class: "row" },
      submit,
      h(
        "span",
        { class: "muted" },
        audienceOf(operation) === "public"
          ? "Without a key."
          : `As ${holderOf(audienceOf(operation))?.label ?? "the holder of the key"}.`,
      ),
    ),
    output,
  );
}

async function answer(status, headers, begin, read) {
  const took = Math.round(performance.now() - begin);
  let text = await read();
  if (text.length > longestShown) {
    text = `${text.slice(0, longestShown)}\n… ${text.length - longestShown} more characters`;
  }
  try {
    text = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Shown unchanged.
  }
  const shown = ["ETag", "Location", "X-Request-Id", "Content-Type", "Retry-After"].filter((name) => headers.get(name))
    .map((name) => `${name}: ${headers.get(name)}`);
  return [
    h(
      "p",
      {},
      h("b", { class: `status s${String(status)[0]}` }, status || "no answer"),
      h("span", { class: "muted" }, ` in ${took} ms`),
    ),
    h(
      "pre",
      { tabindex: 0 },
      [...shown, shown.length && text ? "" : null, text].filter((line) => line !== null).join("\n"),
    ),
  ];
}
