// One session: its figures, and its tasks, events or configuration below.

import { call, path, post } from "./api.js";
import { eventLog } from "./events.js";
import { h, render } from "./dom.js";
import { bytes, count, counted, left, rate } from "./format.js";
import { openNewTasks } from "./forms.js";
import { announce, badge, button, confirmThen, empty, facts, notice, section, tabs, toast } from "./parts.js";
import { plot } from "./plot.js";
import { go, link } from "./route.js";
import { taskList } from "./tasks.js";
import { SessionWatch } from "./watch.js";
import { sessionStatus } from "./words.js";

/** The view of a session. */
export function sessionView(host, route) {
  const [, identifier, tab = "tasks"] = route.segments;
  const watch = new SessionWatch(identifier);
  const head = h("div", { class: "stack" });
  const body = h("div", { class: "stack" });
  render(host, head, body);
  const part = tab === "tasks" ? taskList(body, watch, route) : tab === "events" ? eventLog(body, watch, route) : null;

  watch.onChange(({ tasks }) => {
    showHead(head, watch, tab);
    if (isGone(watch)) render(body);
    else if (!part && watch.session) render(body, configuration(watch.session));
    const [task] = tasks;
    if (task === "all") announce("Tasks changed");
    else if (task) announce(tasks.size === 1 ? `Task ${task} changed` : `${tasks.size} tasks changed`);
  });
  return {
    update: (next) => part?.update?.(next),
    close() {
      part?.close?.();
      watch.close();
    },
  };
}

const isGone = ({ problem }) => problem?.status === 404;

function showHead(host, watch, tab) {
  const { session, identifier, problem } = watch;
  if (!session || isGone(watch)) {
    render(
      host,
      problem && (isGone(watch)
        ? empty(
          "No such session",
          `There is no session ${identifier}. It may have been deleted.`,
          h("a", { class: "button", href: link(["sessions"]) }, "All sessions"),
        )
        : notice(problem)),
    );
    return;
  }
  const { taskCounts: counts } = session;
  render(
    host,
    h(
      "div",
      { class: "view-head" },
      h(
        "div",
        { class: "heading" },
        h("p", { class: "crumbs" }, h("a", { href: link(["sessions"]), "data-key": "u" }, "Sessions")),
        h("h1", {}, h("bdi", {}, session.sessionDescription || identifier), " ", badge(sessionStatus(session))),
        session.sessionDescription && h("p", { class: "muted" }, h("code", {}, identifier)),
        h(
          "p",
          { class: "sub" },
          stateOfWatch(watch.state),
          timeLeft(watch, counts.running),
          session.attachment && h("span", { class: "tag" }, `attached: ${session.attachment.kind}`),
          session.launch &&
            h(
              "a",
              { class: "tag", href: link(["launches", session.launch.launchId]) },
              `launch: ${session.launch.state}`,
            ),
        ),
      ),
      h(
        "div",
        { class: "row" },
        session.state === "active" &&
          button("New download", () => openNewTasks(identifier), { class: "primary", "data-key": "n" }),
        button("End…", () => openEnd(session), { "aria-haspopup": "dialog" }),
      ),
    ),
    problem && notice(problem),
    h(
      "div",
      { class: "overview" },
      h(
        "ul",
        { class: "tiles", "aria-label": "Figures" },
        tile("Running", count(counts.running), link(["sessions", identifier], { state: "running" })),
        tile("Suspended", count(counts.suspended), link(["sessions", identifier], { state: "suspended" })),
        tile("Succeeded", count(counts.succeeded), link(["sessions", identifier], { outcome: "succeeded" })),
        tile(
          "Not succeeded",
          count(counts.failed + counts.httpError),
          link(["sessions", identifier], { outcome: counts.failed || !counts.httpError ? "failed" : "httpError" }),
          counts.failed + counts.httpError > 0 && "bad-text",
        ),
        tile("Received", bytes(session.countOfBytesReceived + watch.moving("download"))),
        tile("Sent", bytes(session.countOfBytesSent + watch.moving("upload"))),
      ),
      plot("Throughput", [{ name: "Throughput", tone: "run", series: watch.throughput }], {
        format: rate,
        base: 1024,
        least: 1024,
        span: 60_000,
      }),
    ),
    tabs("Parts of the session", [
      { text: "Tasks", href: link(["sessions", identifier]), current: tab === "tasks" },
      {
        text: "Events",
        href: link(["sessions", identifier, "events"]),
        current: tab === "events",
        count: count(session.lastEventSeq),
      },
      { text: "Launches", href: link(["launches"], { session: identifier }) },
      {
        text: "Configuration",
        href: link(["sessions", identifier, "configuration"]),
        current: tab === "configuration",
      },
    ]),
  );
}

/** The remaining time of transfers with known length at the current speed, and the number of the others. */
function timeLeft(watch, running) {
  const { transfers, bytes } = watch.remaining();
  const text = left(bytes / watch.throughput.last);
  if (!text) return null;
  const others = running > transfers ? ` for ${count(transfers)} of ${counted(running, "running task")}` : "";
  return h("span", { class: "muted figure", id: "time-left" }, `about ${text}${others}`);
}

/** Whether the view is current. */
export function stateOfWatch(state) {
  const [tone, text] =
    {
      connecting: ["idle", "connecting"],
      live: ["good", "live"],
      waiting: ["warn", "reconnecting"],
      ended: ["idle", "not live"],
    }[state];
  return h("span", { class: `live ${tone}` }, h("i", { class: "dot", "aria-hidden": "true" }), text);
}

function tile(name, value, href, tone) {
  const content = [h("span", { class: `tile-value ${tone || ""}` }, value), h("span", { class: "tile-name" }, name)];
  return h("li", {}, href ? h("a", { class: "tile", href }, content) : h("div", { class: "tile" }, content));
}

function configuration(session) {
  const shown = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));
  return section(
    "Configuration",
    {},
    h("p", { class: "muted pad" }, "Frozen when the session was created, except the bandwidth limit."),
    facts(Object.entries(session.configuration).map(([name, value]) => [name, h("code", {}, shown(value))]), {
      class: "facts wide-names",
    }),
  );
}

function openEnd(session) {
  const target = (verb) => `${path("sessions", session.identifier)}/${verb}`;
  const ways = {
    finish: ["Finish the tasks, then invalidate", () => post(target("finish-tasks-and-invalidate"))],
    cancel: ["Cancel all tasks and invalidate", () => post(target("invalidate-and-cancel"))],
    reset: ["Reset cookies, credentials and connections", () => post(target("reset"))],
    delete: ["Delete the session with its contents", () => call("DELETE", path("sessions", session.identifier))],
  };
  confirmThen(
    `End or reset ${session.identifier}`,
    [
      h("span", { class: "visually-hidden" }, "Choose an action."),
      ...Object.entries(ways).map(([name, [text]], index) =>
        h(
          "label",
          { class: "check" },
          h("input", { type: "radio", name: "way", value: name, checked: index === 0 }),
          text,
        )
      ),
    ],
    "Do it",
    async (form) => {
      const way = form.get("way");
      await ways[way][1]();
      toast(`${ways[way][0]}: done.`);
      if (way === "delete") go(["sessions"]);
    },
    "Keep it",
  );
}
