// The reference: the service's own description, rendered.

import { call } from "./api.js";
import { Description } from "./description.js";
import { h, render } from "./dom.js";
import { hasKeys, holderOf, onKeys } from "./keys.js";
import { markdown } from "./markdown.js";
import { operationBody } from "./operation.js";
import { button, notice } from "./parts.js";
import { schemaTree } from "./schema.js";
import { openKeys } from "./signin.js";

const main = document.getElementById("main");
const index = document.getElementById("index");
const contents = document.getElementById("contents");
/** The width from which the index has its own column; docs.css has the same width. */
const isWide = matchMedia("(min-width: 981px)");
const bodies = new WeakSet();
let description = null;
let search = "";

function showFrame() {
  render(
    document.getElementById("holder"),
    h("a", { class: "quiet button", href: "/openapi.yaml" }, "YAML"),
    h("a", { class: "quiet button", href: "/openapi.json" }, "JSON"),
    button(
      hasKeys()
        ? ["app", "operator"].map((audience) => holderOf(audience)?.label).filter(Boolean).join(" + ")
        : "Set a key",
      openKeys,
      { class: hasKeys() ? "quiet holder" : "small", id: "keys" },
    ),
  );
}

function fits(operation) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const text = `${operation.method} ${operation.path} ${operation.identifier} ${operation.summary}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function showIndex() {
  const groups = description.tags.map((tag) => ({ ...tag, operations: tag.operations.filter(fits) })).filter((
    { operations },
  ) => operations.length > 0);
  render(
    index,
    h(
      "div",
      { class: "find" },
      h("input", {
        type: "search",
        "aria-label": "Find a route",
        placeholder: "Find a route",
        id: "find",
        on: {
          input: (event) => {
            search = event.target.value;
            showIndex();
          },
        },
      }),
    ),
    groups.length === 0 && h("p", { class: "muted" }, "No route matches."),
    groups.map((tag) =>
      h(
        "section",
        { key: tag.name, "aria-label": tag.name },
        h("h2", {}, tag.name),
        h(
          "ul",
          {},
          tag.operations.map((operation) =>
            h(
              "li",
              { key: operation.identifier },
              h(
                "a",
                { href: `#${operation.identifier}`, title: operation.summary },
                method(operation),
                h("span", {}, operation.path.replace(/^\/v1/, "")),
              ),
            )
          ),
        ),
      )
    ),
    h(
      "section",
      { key: "schemas", "aria-label": "More" },
      h("h2", {}, "More"),
      h(
        "ul",
        {},
        [["webhooks", "Webhooks"], ["schemas", "Schemas"]].map(([id, text]) =>
          h("li", {}, h("a", { href: `#${id}` }, text))
        ),
      ),
    ),
  );
}

function method({ method: name }) {
  return h("b", { class: `method ${name.toLowerCase()}` }, name);
}

/** A part that is created when it is opened, because all of them together would be very long. */
function folded(id, summary, make) {
  return h("details", {
    id,
    class: "panel operation",
    on: {
      toggle: (event) => {
        const element = event.currentTarget;
        if (!element.open || bodies.has(element)) return;
        bodies.add(element);
        element.append(make());
      },
    },
  }, h("summary", {}, summary));
}

function showAll() {
  render(
    main,
    h("section", { class: "intro" }, h("h1", {}, description.title), markdown(description.text)),
    description.tags.map((tag) =>
      h(
        "section",
        { "aria-labelledby": `tag-${tag.name}` },
        h("h2", { id: `tag-${tag.name}`, class: "tag-head" }, tag.name),
        tag.text && h("p", { class: "muted" }, markdown(tag.text)),
        h(
          "div",
          { class: "operations" },
          tag.operations.map((operation) =>
            folded(operation.identifier, [
              method(operation),
              h("code", {}, operation.path),
              h("span", { class: "muted" }, operation.summary),
            ], () => operationBody(description, operation))
          ),
        ),
      )
    ),
    h(
      "section",
      { "aria-labelledby": "webhooks" },
      h("h2", { id: "webhooks", class: "tag-head" }, "Webhooks"),
      h("p", { class: "muted" }, "Requests of the service to the app."),
      h(
        "div",
        { class: "operations" },
        description.webhooks.map((hook) =>
          folded(
            hook.identifier,
            [method(hook), h("code", {}, hook.path), h("span", { class: "muted" }, hook.summary)],
            () => operationBody(description, hook),
          )
        ),
      ),
    ),
    h(
      "section",
      { "aria-labelledby": "schemas" },
      h("h2", { id: "schemas", class: "tag-head" }, "Schemas"),
      h(
        "div",
        { class: "operations" },
        description.schemas.map(([name, schema]) =>
          folded(`schema-${name}`, [
            h("code", {}, name),
            h("span", { class: "muted clip" }, schema.description?.split("\n")[0] ?? ""),
          ], () => h("div", { class: "operation-body" }, schemaTree(description, schema)))
        ),
      ),
    ),
  );
}

function foldIndex() {
  contents.open = isWide.matches;
}

function openPlace() {
  const element = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!element) return;
  if (element.matches("details")) element.open = true;
  element.scrollIntoView();
  for (const link of index.querySelectorAll("a")) {
    if (link.hash === location.hash) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

async function begin() {
  showFrame();
  try {
    description = new Description(await call("GET", "/openapi.json", { audience: "public" }));
  } catch (problem) {
    render(main, notice(problem));
    return;
  }
  document.getElementById("version").textContent = `API ${description.version}`;
  showIndex();
  showAll();
  openPlace();
}

foldIndex();
isWide.addEventListener("change", foldIndex);
index.addEventListener("click", (event) => {
  // Folded before the browser scrolls to the target, which moves up.
  if (event.target.closest("a")) foldIndex();
});
addEventListener("hashchange", openPlace);
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  contents.open = true;
  document.getElementById("find")?.focus();
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
onKeys(showFrame);
begin();
