// Entering a key, and determining its kind.

import { call, Problem } from "./api.js";
import { h, render } from "./dom.js";
import { forgetKey, holderOf, keepKey, keyOf } from "./keys.js";
import { button, dialog, field, notice } from "./parts.js";

/**
 * Determines the kind of a key and stores it.
 *
 * @param {string} key
 * @param {boolean} isForTab Whether the key survives a reload.
 * @returns {Promise<"app"|"operator">}
 * @throws {Problem} If the key is unknown.
 */
export async function useKey(key, isForTab) {
  const refused = (error) => {
    if (error instanceof Problem && error.status === 403) return null;
    throw error;
  };
  const app = await call("GET", "/v1/app", { key }).catch(refused);
  if (app) {
    keepKey("app", key, { label: app.identifier }, isForTab);
    return "app";
  }
  const apps = await call("GET", "/v1/apps?limit=1", { key }).catch(refused);
  if (apps) {
    keepKey("operator", key, { label: "operator" }, isForTab);
    return "operator";
  }
  // The key of an app that may not read the app itself.
  keepKey("app", key, { label: "limited key" }, isForTab);
  return "app";
}

const wanted = {
  app: ["Your app’s key", "Sessions, tasks and launches belong to an app. Its key shows them."],
  operator: [
    "The operator’s key",
    "The service as a whole is for the operator. It is in DATA_DIR/admin.key after the first start.",
  ],
};

function keyInput(properties) {
  return h("input", {
    type: "password",
    name: "key",
    required: true,
    autocomplete: "current-password",
    spellcheck: "false",
    autocapitalize: "off",
    ...properties,
  });
}

/** The user name by which a password manager distinguishes the two keys. */
function userInput(audience) {
  return h("input", {
    type: "text",
    name: "username",
    autocomplete: "username",
    value: audience,
    readonly: true,
    class: "visually-hidden",
    tabindex: -1,
    "aria-hidden": "true",
  });
}

function keepBox() {
  return h(
    "label",
    { class: "check" },
    h("input", { type: "checkbox", name: "keep" }),
    "Keep the key for this tab",
  );
}

/** The view for a place that requires a key. */
export function signInView(host, audience) {
  const [title, text] = wanted[audience];
  const problem = h("div");
  const input = keyInput();
  const submit = h("button", { type: "submit", class: "primary" }, "Open");
  const form = h(
    "form",
    {
      class: "sign-in panel",
      on: {
        submit: async (event) => {
          event.preventDefault();
          submit.setAttribute("aria-busy", "true");
          render(problem);
          try {
            const found = await useKey(input.value.trim(), form.elements.keep.checked);
            if (found !== audience) location.hash = found === "app" ? "#/sessions" : "#/service";
          } catch (error) {
            render(problem, notice(error));
            input.focus();
            input.select();
          } finally {
            submit.removeAttribute("aria-busy");
          }
        },
      },
    },
    h("h1", {}, title),
    h("p", { class: "muted" }, text),
    userInput(audience),
    field("Key", input, "It stays in this page’s memory. Reloading or closing the page forgets it, unless the tab keeps it."),
    keepBox(),
    problem,
    h("div", { class: "row" }, submit, h("a", { href: "/docs", class: "button quiet" }, "The API’s reference")),
  );
  render(host, form);
  input.focus();
  return {};
}

/** A dialog that lists the keys, removes them, and adds another. */
export function openKeys() {
  dialog("Keys", (close) => [
    h(
      "ul",
      { class: "plain-list" },
      ["app", "operator"].filter(keyOf).map((audience) =>
        h(
          "li",
          { class: "row between" },
          h("span", {}, audience === "app" ? "App " : "", h("strong", {}, holderOf(audience).label)),
          button("Forget", () => {
            close();
            forgetKey(audience);
          }, { class: "small" }),
        )
      ),
    ),
    userInput(keyOf("app") && !keyOf("operator") ? "operator" : "app"),
    field("Another key", keyInput({ autofocus: true }), "An app’s key and the operator’s can be open side by side."),
    keepBox(),
  ], { submit: "Open", action: (form) => useKey(form.get("key").trim(), form.has("keep")) });
}
