// The sessions of the app.

import { call, query } from "./api.js";
import { h, render } from "./dom.js";
import { bytes, count, relative } from "./format.js";
import { openNewSession } from "./forms.js";
import { badge, button, choice, empty, notice, pager, table, time } from "./parts.js";
import { link, refine } from "./route.js";
import { refreshed } from "./stream.js";
import { sessionStatus } from "./words.js";

const columns = [
  { title: "Session" },
  { title: "State", class: "wide" },
  { title: "Running", number: true },
  { title: "Suspended", number: true, class: "wide" },
  { title: "Succeeded", number: true, class: "wide" },
  { title: "Failed", number: true },
  { title: "Received", number: true, class: "wide" },
  { title: "Sent", number: true, class: "widest" },
  { title: "Unread events", number: true, class: "widest" },
];

const orders = [["", "Oldest first"], ["desc", "Newest first"], ["busiest", "Busiest first"]];
/** The number of sessions to sort; the API does not sort by activity. */
const mostCompared = 1000;

const byWork = ({ taskCounts: one }, { taskCounts: other }) =>
  other.running - one.running || other.suspended - one.suspended;

/** The list of sessions. */
export function sessionsView(host, route) {
  let { query: place } = route;

  async function ask(signal) {
    if (place.order !== "busiest") {
      const { order, cursor } = place;
      return call("GET", "/v1/sessions" + query({ limit: 100, order, cursor }), { signal });
    }
    const page = await call("GET", "/v1/sessions" + query({ limit: mostCompared, order: "desc" }), { signal });
    return { items: page.items.sort(byWork), nextCursor: null, isPart: page.nextCursor !== null };
  }

  function draw(page, problem) {
    const search = (place.search ?? "").toLowerCase();
    const items = (page?.items ?? []).filter(({ identifier, sessionDescription }) =>
      `${identifier} ${sessionDescription ?? ""}`.toLowerCase().includes(search)
    );
    render(
      host,
      h(
        "div",
        { class: "view-head" },
        h("h1", {}, "Sessions"),
        h(
          "div",
          { class: "row" },
          choice(
            "order",
            orders,
            place.order ?? "",
            { change: (event) => refine({ order: event.target.value, cursor: "" }) },
            "Order",
          ),
          h("input", {
            type: "search",
            placeholder: "Search",
            "aria-label": "Search the sessions of this page",
            "data-key": "/",
            value: place.search ?? "",
            on: { input: (event) => refine({ search: event.target.value }, { replace: true }) },
          }),
          button("New session", openNewSession, { class: "primary", "data-key": "n" }),
        ),
      ),
      problem && notice(problem),
      page?.isPart &&
        h(
          "p",
          { class: "muted" },
          `Of the ${count(page.items.length)} newest sessions. There are older ones, which may be busier.`,
        ),
      page && (items.length === 0 ? nothing(search) : table("Sessions", columns, items.map(row))),
      page &&
        pager(
          !place.cursor,
          page.nextCursor && link(["sessions"], { ...place, cursor: page.nextCursor }),
          link(["sessions"], { ...place, cursor: "" }),
        ),
    );
  }

  function nothing(search) {
    return search
      ? empty("No session matches", "The search covers the identifiers and descriptions of this page.")
      : empty(
        "No sessions yet",
        "A session is a durable container of downloads and uploads. Create one with PUT /v1/sessions/NAME or the button above.",
      );
  }

  const { load, show, close } = refreshed(ask, draw, 3000);
  return {
    update(next) {
      const isElsewhere = next.query.cursor !== place.cursor || next.query.order !== place.order;
      place = next.query;
      if (isElsewhere) load();
      else show();
    },
    close,
  };
}

function row(session) {
  const { taskCounts: counts } = session;
  const tasks = (
    state,
    number,
  ) => (number
    ? h("a", { href: link(["sessions", session.identifier], state) }, count(number))
    : h("span", { class: "muted" }, "0"));
  const bad = counts.failed + counts.httpError;
  return {
    key: session.identifier,
    stamp: JSON.stringify([session, relative(session.createdAt)]),
    cells: () => [
      h(
        "div",
        { class: "name" },
        h(
          "a",
          { href: link(["sessions", session.identifier]), "data-row": true, class: "title" },
          h("bdi", {}, session.sessionDescription || session.identifier),
        ),
        h(
          "span",
          { class: "sub" },
          h("span", { class: "narrow" }, badge(sessionStatus(session))),
          session.sessionDescription && h("code", { class: "clip" }, session.identifier),
          session.launch &&
            h(
              "a",
              { class: "tag", href: link(["launches", session.launch.launchId]) },
              `launch: ${session.launch.state}`,
            ),
          session.attachment && h("span", { class: "tag" }, `attached: ${session.attachment.kind}`),
          h("span", { class: "muted" }, "made ", time(session.createdAt)),
        ),
      ),
      badge(sessionStatus(session)),
      tasks({ state: "running" }, counts.running),
      tasks({ state: "suspended" }, counts.suspended),
      tasks({ outcome: "succeeded" }, counts.succeeded),
      bad
        ? h("a", {
          class: "bad-text",
          href: link(["sessions", session.identifier], { outcome: counts.failed ? "failed" : "httpError" }),
        }, count(bad))
        : h("span", { class: "muted" }, "0"),
      bytes(session.countOfBytesReceived),
      bytes(session.countOfBytesSent),
      h(
        "a",
        { href: link(["sessions", session.identifier, "events"]) },
        count(session.lastEventSeq - session.acknowledgedSeq),
      ),
    ],
  };
}
