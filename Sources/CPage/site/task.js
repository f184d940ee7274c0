// One task: its state, the reason for waiting, and its attempts.

import { call, path, post } from "./api.js";
import { h, render } from "./dom.js";
import { request, result } from "./exchange.js";
import { bytes, duration, left, namesOf, rate } from "./format.js";
import { findMetrics } from "./history.js";
import { badge, button, confirmThen, empty, facts, notice, section, time } from "./parts.js";
import { plot, Series } from "./plot.js";
import { go, link } from "./route.js";
import { segmentMap } from "./segments.js";
import { stateOfWatch } from "./session.js";
import { poll } from "./stream.js";
import { progress, timeLeft } from "./tasks.js";
import { SessionWatch } from "./watch.js";
import { waterfall } from "./waterfall.js";
import { eventText, taskStatus, waitsFor } from "./words.js";

/** The view of a task. */
export function taskView(host, route) {
  const [, identifier, , number] = route.segments;
  const target = path("sessions", identifier, "tasks", number);
  const ender = new AbortController();
  const watch = new SessionWatch(identifier);
  const speed = new Series();
  let task = null;
  let problem = null;
  /** `undefined` before the search and after an interrupted one, `null` during it, `false` if the log has lost them. */
  let metrics;
  let lastRead = 0;

  async function load() {
    lastRead = Date.now();
    try {
      task = await call("GET", target, { signal: ender.signal });
      problem = null;
    } catch (error) {
      if (ender.signal.aborted) return;
      problem = error;
    }
    if (task?.state === "completed" && metrics === undefined) {
      metrics = null;
      findMetrics(identifier, task, ender.signal).then((found) => {
        metrics = found ?? false;
        show();
      }, (error) => {
        if (ender.signal.aborted) return;
        // The next reading of the task searches again.
        metrics = error.mayPass ? undefined : error;
        show();
      });
    }
    show();
  }

  watch.onChange(({ tasks }) => {
    const isMoving = task?.state === "running" || task?.state === "canceling";
    if (task?.state === "running") speed.add(watch.rates.get(Number(number))?.last ?? 0);
    const pause = isMoving ? 1000 : 10_000;
    if (tasks.has(Number(number)) || tasks.has("all") || Date.now() - lastRead >= pause) load();
    else if (task) show();
  });

  const act = (verb, body) => async () => {
    const answer = await post(`${target}/${verb}`, body);
    if (verb === "retry") go(["sessions", identifier, "tasks", answer.taskIdentifier]);
    else await load();
  };

  function show() {
    if (!task) {
      render(
        host,
        problem && (problem.status === 404
          ? empty(
            "No such task",
            `The session ${identifier} has no task ${number}. Completed tasks are kept for seven days.`,
            h("a", { class: "button", href: link(["sessions", identifier]) }, "Its session"),
          )
          : notice(problem)),
      );
      return;
    }
    const seen = watch.events.filter((event) => event.taskIdentifier === task.taskIdentifier).slice(-50);
    render(
      host,
      head(identifier, task, watch, act),
      problem && notice(problem),
      task.waitingFor?.length > 0 && task.state === "running" && waiting(task),
      task.error && failure(task.error),
      transfer(task, watch, speed),
      task.segmentStates?.length > 0 && segmentMap(task),
      attempts(task, metrics),
      result(task, target),
      request(task),
      seen.length > 0 &&
        section(
          "Seen while this page is open",
          {},
          h(
            "ol",
            { class: "event-list" },
            seen.reverse().map((event) =>
              h(
                "li",
                { key: `${event.occurredAt} ${event.type}` },
                time(event.occurredAt),
                h("code", {}, event.type),
                h("span", {}, eventText(event, { bytes, duration })),
              )
            ),
          ),
        ),
    );
  }

  poll(load, 60_000, ender.signal);
  return {
    close() {
      ender.abort();
      watch.close();
    },
  };
}

function head(session, task, watch, act) {
  const isOpen = task.state === "running" || task.state === "suspended";
  const { title, others } = namesOf(task);
  return h(
    "div",
    { class: "view-head" },
    h(
      "div",
      { class: "heading" },
      h(
        "p",
        { class: "crumbs" },
        h("a", { href: link(["sessions"]) }, "Sessions"),
        " / ",
        h("a", { href: link(["sessions", session]), "data-key": "u" }, session),
      ),
      h(
        "h1",
        {},
        h("span", { class: "muted" }, `Task ${task.taskIdentifier} `),
        h("bdi", {}, title),
        " ",
        badge(taskStatus(task), { id: "task-status" }),
      ),
      others.length > 0 &&
        h("p", { class: "sub muted" }, others.map((name) => h("bdi", { class: "clip" }, name))),
      h(
        "p",
        { class: "sub" },
        stateOfWatch(watch.state),
        h("span", { class: "muted" }, task.kind, ", made ", time(task.createdAt)),
        task.retryOf &&
          h(
            "a",
            { class: "tag", href: link(["sessions", session, "tasks", task.retryOf]) },
            `retry of ${task.retryOf}`,
          ),
      ),
    ),
    h(
      "div",
      { class: "row" },
      task.state === "running" && button("Suspend", act("suspend")),
      task.state === "suspended" && button("Resume", act("resume"), { class: "primary" }),
      task.state === "running" && (task.phase === "retryWait" || task.phase === "waitingForConnectivity") &&
        button("Try now", act("resume"), { class: "primary" }),
      isOpen && button("Cancel", () =>
        confirmThen(
          `Cancel task ${task.taskIdentifier}?`,
          "The bytes received so far are dropped.",
          `Cancel task ${task.taskIdentifier}`,
          act("cancel"),
          "Keep it",
        ), { class: "danger-quiet" }),
      task.state === "completed" && button("Retry", act("retry")),
    ),
  );
}

function waiting(task) {
  return section(
    "Why it waits",
    { class: "panel waits" },
    h(
      "ul",
      { class: "plain-list pad" },
      task.waitingFor.map((reason) =>
        h(
          "li",
          {},
          h("strong", {}, `It waits for ${waitsFor(reason.kind)}.`),
          " ",
          reason.detail,
          reason.until && [" It continues ", time(reason.until), "."],
          reason.questionId && [" ", h("a", { href: link(["questions"], { state: "open" }) }, "Answer the question")],
        )
      ),
    ),
  );
}

function failure(error) {
  return section(
    "Why it failed",
    { class: "panel failed" },
    facts([
      ["Error", h("strong", {}, error.localizedDescription)],
      ["Code", `${error.name} (${error.code})`],
      ["URL", error.failingURL && h("code", {}, error.failingURL)],
      ["Policy", error.policy],
      [
        "Underneath",
        error.underlying && `${error.underlying.message} (${error.underlying.domain} ${error.underlying.code})`,
      ],
    ]),
  );
}

function transfer(task, watch, speed) {
  const isRunning = task.state === "running";
  const live = watch.progress.get(task.taskIdentifier);
  const remaining = left(timeLeft(task, live, watch.rates.get(task.taskIdentifier)?.last));
  return section(
    "Transfer",
    {
      aside: isRunning && h(
        "span",
        { class: "figure" },
        remaining && `about ${remaining}`,
      ),
    },
    h(
      "div",
      { class: "pad stack" },
      task.state !== "completed" &&
        h("div", { class: "large-progress" }, progress(task, live)),
      h(
        "ul",
        { class: "tiles" },
        task.kind === "download" && figure("Received", bytes(task.countOfBytesReceived)),
        task.kind === "upload" && figure("Sent", bytes(task.countOfBytesSent)),
        isRunning && figure("Speed", rate(watch.rates.get(task.taskIdentifier)?.last ?? task.progress?.throughput)),
        figure(
          task.completedAt ? "Took" : "Elapsed",
          task.startedAt
            ? duration((Date.parse(task.completedAt ?? new Date().toISOString()) - Date.parse(task.startedAt)) / 1000)
            : "–",
        ),
        figure("Attempts", task.attempts?.count ?? 0),
        task.countOfBytesFetchedTwice > 0 && figure("Fetched twice", bytes(task.countOfBytesFetchedTwice)),
      ),
      speed.highest > 0 &&
        plot("Throughput", [{ name: "Throughput", tone: "run", series: speed }], {
          format: rate,
          base: 1024,
          least: 1024,
          span: 60_000,
        }),
    ),
  );
}

function figure(name, value) {
  return h(
    "li",
    {},
    h("div", { class: "tile" }, h("span", { class: "tile-value" }, value), h("span", { class: "tile-name" }, name)),
  );
}

function attempts(task, metrics) {
  const { attempts: told } = task;
  const next = told?.nextAt && h("p", {}, "The next attempt begins ", time(told.nextAt), ".");
  return section(
    "Attempts",
    {},
    h(
      "div",
      { class: "pad stack" },
      next,
      told?.last && task.state !== "completed" && facts([
        ["Last attempt", [
          time(told.last.startedAt),
          told.last.endedAt ? [", ended ", time(told.last.endedAt)] : ", in flight",
        ]],
        ["Status", told.last.statusCode],
        ["Error", told.last.error?.localizedDescription],
      ]),
      metrics?.transactionMetrics ? waterfall(metrics) : h(
        "p",
        { class: "muted" },
        task.state !== "completed"
          ? "Name lookup, connection and waiting times of each request are shown when the task has completed."
          : metrics instanceof Error
          ? `The log of events cannot be read: ${metrics.message}`
          : metrics !== false
          ? "Searching the log of events for the metrics…"
          : "The event with the metrics is no longer in the log. Acknowledged events are kept for an hour.",
      ),
    ),
  );
}
