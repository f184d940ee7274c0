// The tasks of all sessions, with a search by a part of their names.

import { h, render } from "./dom.js";
import { addressOf, hostOf, namesOf, relative } from "./format.js";
import { badge, choice, empty, notice, pager, table, time } from "./parts.js";
import { link, refine } from "./route.js";
import { poll, refreshed } from "./stream.js";
import { progress, readTasks, timeLeft } from "./tasks.js";
import { taskStatus } from "./words.js";

const period = 5000;
const columns = [
  { title: "Task" },
  { title: "Session", class: "wide" },
  { title: "State", class: "wide" },
  { title: "Progress", class: "progress" },
  { title: "Created", class: "widest" },
];
const filters = [
  ["", "All"],
  ["running", "Running"],
  ["suspended", "Suspended"],
  ["completed", "Completed"],
];

/** The list of all tasks. */
export function findView(host, route) {
  const ender = new AbortController();
  let place = route.query;
  let inFlight = 0;

  async function ask(signal) {
    const { search, state, order, cursor } = place;
    inFlight += 1;
    try {
      return await readTasks("/v1/tasks", { search, state, order: order ?? "desc", cursor }, signal);
    } finally {
      inFlight -= 1;
    }
  }

  function draw(page, problem) {
    const isSearching = inFlight > 0 && Boolean(place.search);
    const items = page?.items ?? [];
    render(
      host,
      h("div", { class: "view-head" }, h("h1", {}, "Tasks"), controls(place)),
      problem && notice(problem),
      isSearching && h("p", { class: "muted", role: "status" }, "Searching…"),
      page && !isSearching &&
        (items.length === 0 ? nothing(place, page.nextCursor) : table("Tasks", columns, items.map(row), {
          class: "tasks",
        })),
      page && !isSearching &&
        pager(
          !place.cursor,
          page.nextCursor && link(["tasks"], { ...place, cursor: page.nextCursor }),
          link(["tasks"], { ...place, cursor: "" }),
        ),
    );
  }

  const { load, show, close } = refreshed(ask, draw);
  show();
  // A search does not examine the same tasks repeatedly.
  poll(async () => {
    if (!place.search && inFlight === 0) await load();
  }, period, ender.signal);
  return {
    update(next) {
      place = next.query;
      load();
      show();
    },
    close() {
      ender.abort();
      close();
    },
  };
}

function controls(place) {
  return h(
    "form",
    {
      class: "row",
      role: "search",
      on: {
        submit: (event) => {
          event.preventDefault();
          refine({ search: event.currentTarget.elements.text.value.trim(), cursor: "" });
        },
      },
    },
    choice(
      "state",
      filters,
      place.state ?? "",
      { change: (event) => refine({ state: event.target.value, cursor: "" }) },
      "State",
    ),
    choice(
      "order",
      [["desc", "Newest first"], ["asc", "Oldest first"]],
      place.order ?? "desc",
      { change: (event) => refine({ order: event.target.value, cursor: "" }) },
      "Order",
    ),
    h("input", {
      type: "search",
      name: "text",
      class: "long",
      maxlength: 256,
      "aria-label": "Search all tasks",
      placeholder: "Part of a name, URL or client id",
      "data-key": "/",
      value: place.search ?? "",
    }),
  );
}

function nothing(place, hasMore) {
  if (hasMore) return empty("No task matches so far", "The search continues on the next page.");
  return place.search || place.state
    ? empty("No task matches", "The search covers names, client ids and URLs without their query.")
    : empty("No tasks yet", "Tasks of all sessions will be shown here.");
}

function row(task) {
  const { sessionIdentifier: session, taskIdentifier: number } = task;
  const { title, others } = namesOf(task);
  return {
    key: `${session} ${number}`,
    stamp: JSON.stringify([task, relative(task.createdAt)]),
    cells: () => [
      h(
        "div",
        { class: "name" },
        h(
          "a",
          { class: "title", "data-row": true, href: link(["sessions", session, "tasks", number]) },
          h("span", { class: "muted" }, `${number} `),
          h("bdi", {}, title),
        ),
        h(
          "span",
          { class: "sub" },
          h("span", { class: "narrow" }, badge(taskStatus(task))),
          h("span", { class: "narrow" }, sessionLink(session)),
          task.kind === "upload" && h("span", { class: "tag" }, "upload"),
          others.map((name) => h("bdi", { class: "clip" }, name)),
          h("span", { class: "muted clip" }, hostOf(addressOf(task.originalRequest))),
          task.group && h("span", { class: "tag" }, task.group),
        ),
      ),
      sessionLink(session),
      badge(taskStatus(task)),
      progress(task, null, timeLeft(task)),
      time(task.createdAt),
    ],
  };
}

function sessionLink(session) {
  return h("a", { class: "clip", href: link(["sessions", session]) }, h("code", {}, session));
}
