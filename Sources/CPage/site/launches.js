// Webhooks that launch the app, and their attempts.

import { call, path, post, query } from "./api.js";
import { h, render } from "./dom.js";
import { duration, moment } from "./format.js";
import { badge, button, choice, empty, facts, notice, pager, section, table, time, toast } from "./parts.js";
import { link, refine } from "./route.js";
import { refreshed } from "./stream.js";
import { launchKind, launchReason, launchStatus } from "./words.js";

const states = ["pending", "delivering", "launched", "completed", "superseded", "exhausted", "parked"];
const kinds = ["session.handleEvents", "app.performFetch", "app.backgroundRefreshStatusDidChange", "webhook.ping"];
const redeliverable = new Set(["pending", "delivering", "launched", "exhausted", "parked"]);

const notCompleted = "notCompleted";

/** The error of an attempt. `deadline`: the webhook's, in seconds, if it is known and applies. */
function attemptError(error, deadline) {
  if (error !== notCompleted) return error;
  return `accepted, not completed ${deadline ? `within ${deadline} s` : "in time"}`;
}

/** The list of launches. */
export function launchesView(host, route) {
  let place = route.query;
  const ask = (signal) => {
    const { state, kind, session, cursor } = place;
    return call("GET", "/v1/launches" + query({ state, kind, session, cursor, limit: 50 }), { signal });
  };

  function draw(page, problem) {
    const pick = (name) => ({ change: (event) => refine({ [name]: event.target.value, cursor: "" }) });
    render(
      host,
      h(
        "div",
        { class: "view-head" },
        h("h1", {}, "Launches"),
        h(
          "form",
          {
            class: "row",
            role: "search",
            on: {
              submit: (event) => {
                event.preventDefault();
                refine({ session: event.currentTarget.elements.session.value.trim(), cursor: "" });
              },
            },
          },
          choice(
            "state",
            [["", "Any state"], ...states.map((state) => [state, launchStatus({ state }).text])],
            place.state ?? "",
            pick("state"),
            "State",
          ),
          choice(
            "kind",
            [["", "Any kind"], ...kinds.map((kind) => [kind, launchKind(kind)])],
            place.kind ?? "",
            pick("kind"),
            "Kind",
          ),
          h("input", {
            type: "search",
            name: "session",
            placeholder: "Session, Enter",
            "aria-label": "Session",
            "data-key": "/",
            value: place.session ?? "",
          }),
        ),
      ),
      problem && notice(problem),
      page && (page.items.length === 0
        ? empty(
          "No launches",
          place.state || place.kind || place.session
            ? "None matches the filter."
            : "When the last task of a session ends and no client reads its events, the app’s webhook is called. That is a launch.",
        )
        : table("Launches", [
          { title: "Launch" },
          { title: "State", class: "wide" },
          { title: "Reasons", class: "widest" },
          { title: "Attempts", number: true, class: "wide" },
          { title: "Next attempt", class: "wide" },
          { title: "Created", class: "wide" },
          { title: "Change", hidden: true },
        ], page.items.map((launch) => row(launch, load)))),
      page &&
        pager(
          !place.cursor,
          page.nextCursor && link(["launches"], { ...place, cursor: page.nextCursor }),
          link(["launches"], { ...place, cursor: "" }),
        ),
    );
  }

  const { load, close } = refreshed(ask, draw, 3000);
  return {
    update(next) {
      place = next.query;
      load();
    },
    close,
  };
}

function row(launch, load) {
  return {
    key: launch.launchId,
    cells: [
      h(
        "div",
        { class: "name" },
        h(
          "a",
          { class: "title", "data-row": true, href: link(["launches", launch.launchId]) },
          launchKind(launch.kind),
        ),
        h(
          "span",
          { class: "sub" },
          h("span", { class: "narrow" }, badge(launchStatus(launch))),
          launch.sessionIdentifier &&
            h("a", { href: link(["sessions", launch.sessionIdentifier]) }, launch.sessionIdentifier),
          h("span", { class: "narrow muted" }, time(launch.createdAt)),
          h("code", { class: "muted wide" }, launch.launchId),
          redeliverable.has(launch.state) && launch.attempts.at(-1)?.error &&
            h("span", { class: "bad-text" }, attemptError(launch.attempts.at(-1).error)),
        ),
      ),
      badge(launchStatus(launch)),
      launch.reasons.map(launchReason).join(", ") || "–",
      launch.attempts.length,
      time(launch.nextAttemptAt),
      time(launch.createdAt),
      redeliverable.has(launch.state) ? button("Redeliver", () => redeliver(launch, load), { class: "small" }) : null,
    ],
  };
}

async function redeliver(launch, load) {
  await post(`${path("launches", launch.launchId)}/redeliver`);
  toast("The launch is redelivered.");
  await load();
}

/** One launch with its attempts. */
export function launchView(host, route) {
  const [, launchId] = route.segments;
  const ask = async (signal) => {
    const launch = await call("GET", path("launches", launchId), { signal });
    const isLate = launch.kind !== "app.performFetch" && launch.attempts.some(({ error }) => error === notCompleted);
    // A key with the scope `events` only may not read the app.
    const app = isLate ? await call("GET", "/v1/app", { signal }).catch(() => null) : null;
    return [launch, app?.webhook.launchDeadline];
  };

  function draw(found, problem) {
    const [launch, deadline] = found ?? [];
    if (!launch) {
      render(
        host,
        problem && (problem.status === 404
          ? empty(
            "No such launch",
            "It may have been deleted.",
            h("a", { class: "button", href: link(["launches"]) }, "All launches"),
          )
          : notice(problem)),
      );
      return;
    }
    render(
      host,
      h(
        "div",
        { class: "view-head" },
        h(
          "div",
          { class: "heading" },
          h("p", { class: "crumbs" }, h("a", { href: link(["launches"]), "data-key": "u" }, "Launches")),
          h("h1", {}, launchKind(launch.kind), " ", badge(launchStatus(launch))),
        ),
        redeliverable.has(launch.state) && button("Redeliver", () => redeliver(launch, load), { class: "primary" }),
      ),
      problem && notice(problem),
      section(
        "Launch",
        {},
        facts([
          ["Identifier", h("code", {}, launch.launchId)],
          [
            "Session",
            launch.sessionIdentifier &&
            h("a", { href: link(["sessions", launch.sessionIdentifier]) }, launch.sessionIdentifier),
          ],
          ["Reasons", launch.reasons.map(launchReason).join(", ")],
          ["Events up to", launch.lastSeq],
          ["Created", moment(launch.createdAt)],
          ["Next attempt", launch.nextAttemptAt && time(launch.nextAttemptAt)],
          ["Completed", launch.completedAt && moment(launch.completedAt)],
        ]),
      ),
      launch.attempts.length === 0
        ? empty(
          "No attempt yet",
          launch.state === "parked"
            ? "The app has no webhook, or it is paused or disabled."
            : "The webhook has not been called yet.",
        )
        : section(
          "Attempts",
          {},
          table(
            "Attempts",
            [{ title: "Attempt", number: true }, { title: "Began" }, { title: "Took", number: true, class: "wide" }, {
              title: "Status",
              number: true,
            }, { title: "Response" }],
            launch.attempts.toReversed().map((attempt) => ({
              key: attempt.number,
              cells: [
                attempt.number,
                time(attempt.startedAt),
                duration(attempt.duration),
                attempt.statusCode ?? "–",
                h(
                  "div",
                  { class: "name" },
                  attempt.error
                    ? h("span", { class: "bad-text" }, attemptError(attempt.error, deadline))
                    : attempt.duration === null
                    ? "in flight"
                    : "accepted",
                  attempt.excerpt && h("code", { class: "excerpt" }, attempt.excerpt),
                ),
              ],
            })),
          ),
        ),
    );
  }

  const { load, close } = refreshed(ask, draw, 2000);
  return { close };
}
