// The tasks of a session, by page.

import { call, path, query } from "./api.js";
import { bulkBar } from "./bulk.js";
import { h, render } from "./dom.js";
import { addressOf, bytes, count, hostOf, left, namesOf, percent, rate, relative } from "./format.js";
import { badge, choice, empty, notice, pager, table, time } from "./parts.js";
import { bar, spark } from "./plot.js";
import { go, link, refine } from "./route.js";
import { refreshed } from "./stream.js";
import { taskStatus, waitsFor } from "./words.js";

const pageSize = 50;
const columns = [
  { title: "Select", hidden: true, class: "select" },
  { title: "Task" },
  { title: "State", class: "wide" },
  { title: "Progress", class: "progress" },
  { title: "Speed", class: "wide speed", number: true },
  { title: "Attempts", number: true, class: "widest" },
  { title: "Created", class: "widest" },
];

/** The maximum number of requests for one search. */
const mostTurns = 10;

/**
 * Reads a page of tasks. A search answers with what it has found so far, be it nothing: it is continued until the page is
 * full, for a while.
 *
 * @param {string} target
 * @param {object} members The members of the query.
 * @returns {Promise<{items: object[], nextCursor: string|null}>}
 */
export async function readTasks(target, members, signal) {
  const items = [];
  let { cursor } = members;
  for (let turn = 0; turn < mostTurns; turn += 1) {
    const page = await call("GET", target + query({ ...members, cursor, limit: pageSize - items.length }), { signal });
    items.push(...page.items);
    cursor = page.nextCursor;
    if (!members.search || cursor === null || items.length === pageSize) break;
  }
  return { items, nextCursor: cursor };
}

const filters = [
  ["All", {}, ({ suspended, running, canceling, completed }) => suspended + running + canceling + completed],
  ["Running", { state: "running" }, ({ running }) => running],
  ["Suspended", { state: "suspended" }, ({ suspended }) => suspended],
  ["Succeeded", { outcome: "succeeded" }, ({ succeeded }) => succeeded],
  ["HTTP error", { outcome: "httpError" }, ({ httpError }) => httpError],
  ["Failed", { outcome: "failed" }, ({ failed }) => failed],
  ["Cancelled", { outcome: "cancelled" }, ({ cancelled }) => cancelled],
];

/**
 * The list of a session's tasks, with filters, search and actions on many.
 *
 * @param {Element} host
 * @param {import("./watch.js").SessionWatch} watch
 */
export function taskList(host, watch, route) {
  const selected = new Set();
  let place = route.query;
  let isStale = false;
  let answeredAt;

  async function ask(signal) {
    isStale = false;
    answeredAt = Infinity;
    const { state, outcome, group, clientTaskId, search, order, cursor } = place;
    const target = `${path("sessions", watch.identifier)}/tasks`;
    try {
      return await readTasks(target, { state, outcome, group, clientTaskId, search, order, cursor }, signal);
    } catch (error) {
      isStale = error.mayPass;
      throw error;
    } finally {
      answeredAt = Date.now();
    }
  }

  function draw(page, problem) {
    if (watch.problem?.status === 404) return;
    const items = page?.items ?? [];
    for (const number of selected) if (!items.some((task) => task.taskIdentifier === number)) selected.delete(number);
    render(
      host,
      toolbar(watch, place),
      problem && !watch.problem && notice(problem),
      page && items.length > 0 && bulkBar(watch.identifier, { place, selected, items, changed: show, done: load }),
      page &&
        (items.length === 0
          ? nothing(place, page.nextCursor)
          : table("Tasks", columns, items.map((task) => row(task, watch, selected, show)), { class: "tasks" })),
      page &&
        pager(
          !place.cursor,
          page.nextCursor && link(["sessions", watch.identifier], { ...place, cursor: page.nextCursor }),
          link(["sessions", watch.identifier], { ...place, cursor: "" }),
        ),
    );
  }

  const { load, show, close } = refreshed(ask, draw);
  const unhear = watch.onChange(({ tasks }) => {
    isStale ||= tasks.size > 0;
    // At most once per second, for any number of changes; a search costs more.
    if (isStale && Date.now() - answeredAt >= (place.search ? 5000 : 1000)) load();
    show();
  });
  return {
    update(next) {
      const asked = ["state", "outcome", "group", "clientTaskId", "search", "order", "cursor"].some((name) =>
        next.query[name] !== place[name]
      );
      place = next.query;
      if (asked) {
        selected.clear();
        load();
      } else {
        show();
      }
    },
    close() {
      unhear();
      close();
    },
  };
}

function toolbar(watch, place) {
  // The counts are for the whole session, so a search hides them.
  const counts = place.clientTaskId || place.group || place.search ? null : watch.session?.taskCounts;
  const field = ["search", "clientTaskId", "group"].find((name) => place[name]) ?? place.in ?? "search";
  const search = (name, text) => {
    if (name === "number") return text && go(["sessions", watch.identifier, "tasks", text]);
    refine({
      clientTaskId: "",
      group: "",
      search: "",
      in: name === "search" ? "" : name,
      cursor: "",
      [name]: text.trim(),
    });
  };
  return h(
    "div",
    { class: "toolbar" },
    h(
      "nav",
      { class: "segments-nav", "aria-label": "Filter by state" },
      filters.map(([text, filter, number]) => {
        const isCurrent = (place.state ?? "") === (filter.state ?? "") &&
          (place.outcome ?? "") === (filter.outcome ?? "");
        return h(
          "a",
          {
            href: link(["sessions", watch.identifier], { ...place, state: "", outcome: "", cursor: "", ...filter }),
            "aria-current": isCurrent ? "true" : null,
          },
          text,
          counts && h("span", { class: "count" }, count(number(counts))),
        );
      }),
    ),
    choice(
      "order",
      [["", "Oldest first"], ["desc", "Newest first"]],
      place.order ?? "",
      { change: (event) => refine({ order: event.target.value, cursor: "" }) },
      "Order",
    ),
    h(
      "form",
      {
        class: "search",
        role: "search",
        on: {
          submit: (event) => {
            event.preventDefault();
            search(event.currentTarget.elements.in.value, event.currentTarget.elements.text.value);
          },
        },
      },
      choice(
        "in",
        [["search", "Name or URL"], ["clientTaskId", "Client id"], ["group", "Group"], ["number", "Number"]],
        field,
        {
          change: (event) => refine({ in: event.target.value }, { replace: true }),
        },
        "Search in",
      ),
      h("input", {
        type: "search",
        name: "text",
        "aria-label": "Search tasks",
        placeholder: "Search, Enter",
        "data-key": "/",
        value: place[field] ?? "",
      }),
    ),
  );
}

function nothing(place, hasMore) {
  if (hasMore) return empty("No task matches so far", "The search continues on the next page.");
  const isFiltered = ["state", "outcome", "group", "clientTaskId", "search"].some((name) => place[name]);
  return isFiltered
    ? empty("No task matches", "No task of this session matches the filter or search.")
    : empty("No tasks yet", "Create a download with the button above, or with POST …/tasks.");
}

function row(task, watch, selected, show) {
  const number = task.taskIdentifier;
  const live = task.state === "running" ? watch.progress.get(number) : null;
  const { title, others } = namesOf(task);
  const rates = task.state === "running" ? watch.rates.get(number) : null;
  return {
    key: number,
    stamp: JSON.stringify([task, live, selected.has(number), rates?.points.at(-1), relative(task.createdAt)]),
    "aria-selected": selected.has(number) ? "true" : null,
    cells: () => [
      h("input", {
        type: "checkbox",
        "aria-label": `Select task ${number}`,
        checked: selected.has(number),
        on: {
          change: (event) => {
            if (event.target.checked) selected.add(number);
            else selected.delete(number);
            show();
          },
        },
      }),
      h(
        "div",
        { class: "name" },
        h(
          "a",
          { class: "title", "data-row": true, href: link(["sessions", watch.identifier, "tasks", number]) },
          h("span", { class: "muted" }, `${number} `),
          h("bdi", {}, title),
        ),
        h(
          "span",
          { class: "sub" },
          h("span", { class: "narrow" }, badge(taskStatus(task))),
          task.kind === "upload" ? h("span", { class: "tag" }, "upload") : null,
          others.map((name) => h("bdi", { class: "clip" }, name)),
          h("span", { class: "muted clip" }, hostOf(addressOf(task.originalRequest))),
          task.group && h("span", { class: "tag" }, task.group),
          why(task),
        ),
      ),
      badge(taskStatus(task)),
      progress(task, live, timeLeft(task, live, rates?.last)),
      task.state === "running"
        ? [
          spark(rates, "Throughput"),
          h("span", { class: "figure" }, rate(rates?.last ?? task.progress?.throughput)),
        ]
        : h("span", { class: "muted" }, "–"),
      task.attempts?.count ?? 0,
      time(task.createdAt),
    ],
  };
}

function why(task) {
  if (task.state === "completed" && task.error) {
    return h("span", { class: "bad-text clip" }, task.error.localizedDescription);
  }
  if (task.state === "completed" && task.outcome === "httpError") {
    return h("span", { class: "bad-text" }, `status ${task.response?.statusCode ?? "–"}`);
  }
  const reason = task.waitingFor?.[0];
  return reason && h("span", { class: "muted clip" }, `waits for ${waitsFor(reason.kind)}`);
}

/** The remaining seconds of a transfer, by its live events or else by the task. */
export function timeLeft(task, live, speed) {
  if (task.state !== "running") return null;
  if (live?.expected > 0 && speed > 0) return (live.expected - live.total) / speed;
  return task.progress?.estimatedTimeRemaining;
}

/**
 * How far a task is, by what a live event told last or else by what the task tells; with the seconds that it will take
 * yet, where they are given.
 */
export function progress(task, live, seconds) {
  const isUpload = task.kind === "upload";
  const done = live?.total ?? (isUpload ? task.countOfBytesSent : task.countOfBytesReceived);
  const expected = live?.expected ?? (isUpload ? task.countOfBytesExpectedToSend : task.countOfBytesExpectedToReceive);
  if (task.state === "completed") return h("span", { class: "figure" }, bytes(done));
  const fraction = expected > 0 ? Math.min(1, done / expected) : task.progress?.fractionCompleted;
  const isMoving = task.state === "running" &&
    ["receiving", "sending", "connecting", "finalizing"].includes(task.phase);
  if (done === 0 && !isMoving) return h("span", { class: "muted" }, expected > 0 ? `of ${bytes(expected)}` : "–");
  return h(
    "div",
    { class: "progress-cell" },
    bar(fraction ?? (isMoving ? null : 0), `Progress of task ${task.taskIdentifier}`, isMoving ? "run" : "idle"),
    h("span", { class: "figure" }, expected > 0 ? `${percent(fraction)} of ${bytes(expected)}` : bytes(done)),
    isMoving && left(seconds) && h("span", { class: "figure muted" }, left(seconds)),
  );
}
