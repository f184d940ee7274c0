// The apps of the service, for its operator.

import { call, query } from "./api.js";
import { h, render } from "./dom.js";
import { bytes, count } from "./format.js";
import { badge, empty, notice, pager, table, time } from "./parts.js";
import { link } from "./route.js";
import { refreshed } from "./stream.js";

const columns = [
  { title: "App" },
  { title: "State", class: "wide" },
  { title: "Webhook", class: "wide" },
  { title: "Refresh", class: "wide" },
  { title: "Open tasks", number: true },
  { title: "Stored", number: true, class: "wide" },
  { title: "Created", class: "wide" },
];

/** The list of apps. */
export function appsView(host, route) {
  let place = route.query;
  const ask = (signal) =>
    call("GET", "/v1/apps" + query({ limit: 100, cursor: place.cursor }), { audience: "operator", signal });

  function draw(page, problem) {
    render(
      host,
      h("div", { class: "view-head" }, h("h1", {}, "Apps")),
      problem && notice(problem),
      page &&
        (page.items.length === 0
          ? empty("No apps yet", "POST /v1/apps creates one, with its first key.")
          : table("Apps", columns, page.items.map(row))),
      page && pager(!place.cursor, page.nextCursor && link(["apps"], { cursor: page.nextCursor }), link(["apps"])),
    );
  }

  const { load, close } = refreshed(ask, draw, 5000);
  return {
    update(next) {
      place = next.query;
      load();
    },
    close,
  };
}

const states = { active: ["good", "✓", "Active"], forceQuit: ["bad", "✕", "Force quit"] };
const hooks = { enabled: ["good", "✓"], paused: ["pause", "‖"], disabled: ["bad", "✕"] };
/** A word of a newer service. */
const unknown = ["idle", "–"];

function row({ identifier, state, webhook, backgroundRefreshStatus, usage, limits, createdAt }) {
  const [tone, sign, text = state] = states[state] ?? unknown;
  const shown = badge({ tone, sign, text });
  const [hookTone, hookSign] = (webhook.url ? hooks[webhook.state] : null) ?? unknown;
  return {
    key: identifier,
    cells: [
      h(
        "div",
        { class: "name" },
        h("strong", { class: "title" }, identifier),
        h("span", { class: "narrow sub" }, shown, webhook.url && `webhook ${webhook.state}`),
      ),
      shown.cloneNode(true),
      h(
        "div",
        { class: "name" },
        h("span", {}, badge({ tone: hookTone, sign: hookSign, text: webhook.url ? webhook.state : "none" })),
        webhook.disabledReason && h("span", { class: "sub bad-text" }, webhook.disabledReason),
      ),
      backgroundRefreshStatus,
      [count(usage.tasks), h("span", { class: "wide" }, ` of ${count(limits.tasks)}`)],
      bytes(usage.storedBytes),
      time(createdAt),
    ],
  };
}
