// The log of a session's events: stored events by page, and live ones.

import { path, post } from "./api.js";
import { h, render } from "./dom.js";
import { bytes, clock, duration, moment } from "./format.js";
import { eventsAfter } from "./history.js";
import { button, choice, confirmThen, empty, notice, section, toast } from "./parts.js";
import { link, refine } from "./route.js";
import { eventText } from "./words.js";

const shown = 200;
const kinds = [
  ["", "All events"],
  ["task.didComplete", "didComplete"],
  ["task.didFinishDownloading", "didFinishDownloading"],
  ["task.didFinishCollectingMetrics", "didFinishCollectingMetrics"],
  ["task.willRetry", "willRetry"],
  ["task.didResumeAtOffset", "didResumeAtOffset"],
  ["task.didReceiveChallenge", "didReceiveChallenge"],
  ["task.willBeginDelayedRequest", "willBeginDelayedRequest"],
  ["task.didCreate", "didCreate"],
  ["session.", "of the session"],
  ["set.", "of sets"],
];

/**
 * The log of events.
 *
 * @param {Element} host
 * @param {import("./watch.js").SessionWatch} watch
 */
export function eventLog(host, watch, route) {
  const ender = new AbortController();
  let place = route.query;
  let kept = [];
  let problem = null;
  let isPaused = false;
  let begun = false;
  let asked = 0;

  async function load(after) {
    asked += 1;
    const turn = asked;
    const [items, refusal] = await eventsAfter(watch.identifier, after, shown, ender.signal)
      .then((page) => [page.items, null], (error) => [kept, error]);
    // A response to an earlier request, perhaps for another page, is too late.
    if (ender.signal.aborted || turn !== asked) return;
    [kept, problem] = [items, refusal];
    show();
  }

  function show() {
    if (isPaused) return;
    const isLatest = !place.after;
    const last = kept.at(-1)?.seq ?? 0;
    const fresh = isLatest ? watch.events.filter(({ seq }) => seq === null || seq === undefined || seq > last) : [];
    const all = [...kept, ...fresh].filter(({ type, taskIdentifier }) =>
      (!place.type || type.startsWith(place.type)) && (!place.task || String(taskIdentifier) === place.task)
    ).slice(-shown).reverse();
    const first = kept[0]?.seq ?? 1;
    render(
      host,
      h(
        "div",
        { class: "toolbar" },
        h(
          "div",
          { class: "row" },
          choice(
            "type",
            kinds,
            place.type ?? "",
            { change: (event) => refine({ type: event.target.value }) },
            "Kind of event",
          ),
          h("input", {
            type: "search",
            inputmode: "numeric",
            class: "short",
            "aria-label": "Number of a task",
            placeholder: "Task",
            "data-key": "/",
            value: place.task ?? "",
            on: { input: (event) => refine({ task: event.target.value.trim() }, { replace: true }) },
          }),
        ),
        h(
          "div",
          { class: "row" },
          button("Pause", () => {
            isPaused = true;
            pauseBar();
          }, { class: "small" }),
          button("Acknowledge all…", acknowledge, { class: "small" }),
        ),
      ),
      problem && notice(problem),
      all.length === 0
        ? empty("No events here", "Events are kept until they are acknowledged, and for another hour.")
        : section(
          "Events",
          { class: "panel log" },
          h("ol", { class: "event-list", reversed: true }, all.map((event) => line(event, watch))),
        ),
      h(
        "nav",
        { class: "pager", "aria-label": "Pages" },
        first > 1
          ? h("a", {
            class: "button",
            href: link(["sessions", watch.identifier, "events"], {
              ...place,
              after: Math.max(0, first - 1 - shown) || "0",
            }),
          }, "Earlier")
          : h("span", { class: "muted" }, "The beginning"),
        isLatest ? h("span", { class: "muted" }, "The latest") : [
          h(
            "a",
            { class: "button", href: link(["sessions", watch.identifier, "events"], { ...place, after: last }) },
            "Later",
          ),
          h(
            "a",
            { class: "button", href: link(["sessions", watch.identifier, "events"], { ...place, after: "" }) },
            "The latest",
          ),
        ],
      ),
    );
  }

  function pauseBar() {
    const bar = h(
      "div",
      { class: "notice", role: "status", key: "pause" },
      "Paused. ",
      button("Go on", () => {
        isPaused = false;
        show();
      }, { class: "small", autofocus: true }),
    );
    host.prepend(bar);
    bar.querySelector("button").focus();
  }

  function acknowledge() {
    const { lastEventSeq } = watch.session;
    confirmThen(
      "Acknowledge all events?",
      `Events up to ${lastEventSeq} count as handled by the app: they are dropped in an hour, and contents begin to expire. Usually the app does this itself.`,
      "Acknowledge",
      async () => {
        await post(`${path("sessions", watch.identifier)}/events/ack`, { through: lastEventSeq });
        toast(`Acknowledged up to ${lastEventSeq}.`);
      },
    );
  }

  const start = () => load(place.after ? Number(place.after) : Math.max(0, (watch.session?.lastEventSeq ?? 0) - shown));
  const unhear = watch.onChange(({ events }) => {
    if (!begun && watch.session) {
      begun = true;
      start();
    } else if (events > 0) {
      show();
    }
  });
  return {
    update(next) {
      const isElsewhere = next.query.after !== place.after;
      place = next.query;
      isPaused = false;
      if (isElsewhere) start();
      else show();
    },
    close() {
      unhear();
      ender.abort();
    },
  };
}

function line(event, watch) {
  const { seq, type, taskIdentifier, occurredAt } = event;
  const key = `${seq ?? "live"} ${type} ${taskIdentifier ?? ""} ${occurredAt}`;
  // Past events do not change.
  return h("li", { key, stamp: key }, () =>
    h(
      "details",
      {},
      h(
        "summary",
        {},
        h("span", { class: "seq" }, seq ?? "live"),
        h("time", { datetime: occurredAt, title: moment(occurredAt) }, clock(occurredAt)),
        h("code", {}, type),
        taskIdentifier &&
          h("a", { href: link(["sessions", watch.identifier, "tasks", taskIdentifier]) }, `task ${taskIdentifier}`),
        h("span", { class: "event-text" }, eventText(event, { bytes, duration })),
      ),
      h("pre", {}, JSON.stringify(event, null, 2)),
    ));
}
