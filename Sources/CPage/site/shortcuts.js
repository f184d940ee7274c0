// Keys of the keyboard.

import { h } from "./dom.js";
import { dialog } from "./parts.js";
import { go } from "./route.js";

const places = {
  s: ["sessions"],
  t: ["tasks"],
  e: ["sets"],
  l: ["launches"],
  q: ["questions"],
  a: ["app"],
  o: ["service"],
  p: ["apps"],
};

const described = [
  ["g then s", "Sessions"],
  ["g then t", "Tasks"],
  ["g then e", "Sets"],
  ["g then l", "Launches"],
  ["g then q", "Questions"],
  ["g then a", "App"],
  ["g then o", "Service"],
  ["g then p", "Apps"],
  ["/", "Search"],
  ["n", "New download or session"],
  ["j, k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["x", "Select the row"],
  ["u", "Up: from a task to its session, from a version to its set"],
  ["?", "This list"],
  ["Esc", "Close a dialog"],
];

/** Shows the list of keys. */
export function showShortcuts() {
  dialog("Keyboard", () =>
    h(
      "dl",
      { class: "shortcuts" },
      described.map(([keys, text]) => [
        h("dt", {}, keys.split(/( then |, )/).map((part) => (/ then |, /.test(part) ? part : h("kbd", {}, part)))),
        h("dd", {}, text),
      ]),
    ));
}

/** Starts listening. Views mark the targets of keys: `data-key` on a control, `data-row` on the link of a row. */
export function listenForShortcuts() {
  let isGoing = false;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const place = isGoing && places[event.key];
    isGoing = event.key === "g" && !isGoing;
    if (place) go(place);
    else if (event.key === "?") showShortcuts();
    else if (event.key === "j" || event.key === "k") moveRow(event.key === "j" ? 1 : -1);
    else if (event.key === "x") document.activeElement.closest("tr")?.querySelector("input[type=checkbox]")?.click();
    else {
      const control = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (!control) return;
      if (control.matches("input")) control.focus();
      else control.click();
    }
    event.preventDefault();
  });
}

function moveRow(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const index = rows.indexOf(document.activeElement);
  const next =
    rows[index < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, index + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
