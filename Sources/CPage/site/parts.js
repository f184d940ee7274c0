// Small parts that all views share.

import { clear, h, render } from "./dom.js";
import { moment, relative } from "./format.js";

/** A state with its colour, its sign and its text. */
export function badge({ tone, text, sign }, properties = {}) {
  return h(
    "span",
    { class: `badge ${tone}`, ...properties },
    h("span", { "aria-hidden": "true", class: "sign" }, sign),
    text,
  );
}

/**
 * A button. `action` may be asynchronous: the button is disabled meanwhile, and a failure is shown.
 *
 * @param {string} text
 * @param {() => any} action
 * @param {object} [properties]
 */
export function button(text, action, properties = {}) {
  const { on, ...attributes } = properties;
  return h("button", {
    type: "button",
    ...attributes,
    on: { ...on, click: (event) => attempt(() => action(event), event.currentTarget) },
  }, text);
}

/** Runs an action and shows its failure, if any. */
export async function attempt(action, control) {
  control?.setAttribute("aria-busy", "true");
  try {
    return await action();
  } catch (error) {
    if (error.name !== "AbortError") toast(error);
    return undefined;
  } finally {
    control?.removeAttribute("aria-busy");
  }
}

/** A time relative to now, with the absolute time as its title. */
export function time(value) {
  if (!value) return h("span", { class: "muted" }, "–");
  return h("time", { datetime: value, title: moment(value) }, relative(value));
}

/** Names and values. Rows without a value are omitted. */
export function facts(rows, properties = {}) {
  const given = rows.filter((row) =>
    row && row[1] !== null && row[1] !== undefined && row[1] !== "" && row[1] !== false
  );
  return h(
    "dl",
    { class: "facts", ...properties },
    given.map(([name, ...value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

/** A part of a view with a heading. */
export function section(title, properties, ...children) {
  const { aside, ...attributes } = properties ?? {};
  const id = `h-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h(
    "section",
    { "aria-labelledby": id, class: "panel", ...attributes },
    h("header", { class: "panel-head" }, h("h2", { id }, title), aside && h("div", { class: "aside" }, aside)),
    children,
  );
}

/** The placeholder for an empty list. */
export function empty(title, text, ...children) {
  return h(
    "div",
    { class: "empty" },
    h("p", { class: "empty-title" }, title),
    text && h("p", { class: "muted" }, text),
    children,
  );
}

/** A problem in words, in its place. */
export function notice(problem) {
  const lines = problem.lines ?? [];
  return h(
    "div",
    { class: "notice bad", role: "alert" },
    h(
      "p",
      {},
      h("strong", {}, problem.fields?.title ?? "The request failed."),
      " ",
      problem.fields?.title === problem.message.replace(/\.$/, "") ? "" : problem.message,
    ),
    lines.length > 0 && h("ul", {}, lines.map((line) => h("li", {}, line))),
  );
}

/**
 * A table. Columns are `{title, class?, number?}`; rows are lists of cells, each with a key. A row with a stamp has a
 * function that makes its cells.
 */
export function table(caption, columns, rows, properties = {}) {
  const classOf = ({ class: name, number }) => [name, number && "number"].filter(Boolean).join(" ") || null;
  const cellsOf = (cells) => cells.map((cell, index) => h("td", { class: classOf(columns[index]) }, cell));
  return h(
    "div",
    { class: "table-frame" },
    h(
      "table",
      properties,
      h("caption", { class: "visually-hidden" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((column) =>
            h(
              "th",
              { scope: "col", class: classOf(column) },
              column.hidden ? h("span", { class: "visually-hidden" }, column.title) : column.title,
            )
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(({ cells, ...properties }) =>
          h("tr", properties, properties.stamp === undefined ? cellsOf(cells) : () => cellsOf(cells()))
        ),
      ),
    ),
  );
}

/** A button that copies a text. */
export function copyButton(text, label) {
  return button("Copy", async () => {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  }, { class: "quiet small", "aria-label": `Copy ${label}` });
}

/** A text that can be copied. */
export function copyable(text, label) {
  return h("span", { class: "copyable" }, h("code", {}, text), copyButton(text, label));
}

/** Shows a message for a few seconds; a problem stays longer and is announced at once. */
export function toast(message) {
  const isProblem = message instanceof Error;
  const place = document.getElementById(isProblem ? "alerts" : "messages");
  const lines = isProblem ? message.lines ?? [] : [];
  const box = h(
    "div",
    { class: `toast${isProblem ? " bad" : ""}` },
    h(
      "div",
      {},
      h("p", {}, isProblem ? message.message : message),
      lines.map((line) => h("p", { class: "muted" }, line)),
    ),
    h(
      "button",
      { type: "button", class: "quiet small", "aria-label": "Dismiss", on: { click: () => box.remove() } },
      "✕",
    ),
  );
  place.append(box);
  while (place.children.length > 3) place.firstChild.remove();
  setTimeout(() => box.remove(), isProblem ? 12_000 : 4000);
}

let lastAnnouncement = 0;

/** Announces a change to a screen reader, at most every three seconds; further changes are dropped. */
export function announce(text) {
  if (Date.now() - lastAnnouncement < 3000) return;
  lastAnnouncement = Date.now();
  document.getElementById("announcer").textContent = text;
}

/**
 * Opens a dialog with a form.
 *
 * @param {string} title
 * @param {(close: () => void) => any} content Creates its content.
 * @param {{submit?: string, leave?: string, danger?: boolean, action?: (form: FormData) => any}} [options] `action` runs
 *   when the form is sent; the dialog closes when it is done, and shows what went wrong otherwise. `leave` is the word for
 *   doing nothing.
 */
export function dialog(title, content, { submit, leave = submit ? "Cancel" : "Close", danger, action } = {}) {
  const element = document.getElementById("dialog");
  const close = () => element.close();
  const problem = h("div", { class: "dialog-problem" });
  const confirm = submit && h("button", { class: danger ? "danger" : "primary", type: "submit" }, submit);
  const form = h(
    "form",
    {
      novalidate: false,
      on: {
        submit: async (event) => {
          event.preventDefault();
          confirm?.setAttribute("aria-busy", "true");
          render(problem);
          try {
            if (await action?.(new FormData(form)) !== false) close();
          } catch (error) {
            render(problem, notice(error));
          } finally {
            confirm?.removeAttribute("aria-busy");
          }
        },
      },
    },
    h(
      "header",
      { class: "dialog-head" },
      h("h2", { id: "dialog-title" }, title),
      h("button", { type: "button", class: "quiet small", "aria-label": "Close", on: { click: close } }, "✕"),
    ),
    h("div", { class: "dialog-body" }, content(close), problem),
    h(
      "footer",
      { class: "dialog-foot" },
      h("button", { type: "button", on: { click: close } }, leave),
      confirm,
    ),
  );
  clear(element);
  element.append(form);
  if (!element.open) element.showModal();
  form.querySelector("[autofocus]")?.focus();
}

/**
 * Asks before something that cannot be taken back. Where that is to cancel, `leave` is another word for doing nothing:
 * two buttons that say "Cancel" would mean opposite things.
 */
export function confirmThen(title, text, submit, action, leave) {
  dialog(title, () => h("p", {}, text), { submit, leave, danger: true, action });
}

/** A labelled field. */
export function field(label, control, hint) {
  const id = control.id || `f-${label.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    control,
    hint && h("p", { class: "hint", id: `${id}-hint` }, hint),
  );
}

/** A choice among words. `label` is for a choice without a field around it. */
export function choice(name, options, value, on, label) {
  return h(
    "select",
    { name, value, on, "aria-label": label },
    options.map(([word, text]) => h("option", { value: word }, text)),
  );
}

/** Links among the parts of a view. */
export function tabs(label, items) {
  return h(
    "nav",
    { class: "tabs", "aria-label": label },
    items.map(({ text, href, current, count }) =>
      h(
        "a",
        { href, "aria-current": current ? "page" : null },
        text,
        count !== undefined && h("span", { class: "count" }, count),
      )
    ),
  );
}

/** Links back to the first page and on to the next one. */
export function pager(isFirst, next, first) {
  if (isFirst && !next) return null;
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages" },
    isFirst ? h("span", { class: "muted" }, "First page") : h("a", { class: "button", href: first }, "First page"),
    next
      ? h("a", { class: "button", href: next, rel: "next" }, "Next page")
      : h("span", { class: "muted" }, "Last page"),
  );
}
