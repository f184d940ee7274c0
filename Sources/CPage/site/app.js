// The app behind the key: its webhook, usage and background refresh.

import { call, post } from "./api.js";
import { h, render } from "./dom.js";
import { bytes, count, duration, moment } from "./format.js";
import {
  badge,
  button,
  choice,
  confirmThen,
  dialog,
  empty,
  facts,
  field,
  notice,
  section,
  table,
  time,
  toast,
} from "./parts.js";
import { bar } from "./plot.js";
import { link } from "./route.js";
import { refreshed } from "./stream.js";

const fetchResults = {
  newData: ["good", "New data", "✓"],
  noData: ["idle", "No data", "–"],
  failed: ["bad", "Failed", "✕"],
};
const states = {
  enabled: ["good", "✓"],
  paused: ["pause", "‖"],
  disabled: ["bad", "✕"],
  active: ["good", "✓"],
  forceQuit: ["bad", "✕"],
  available: ["good", "✓"],
  denied: ["bad", "✕"],
  restricted: ["warn", "!"],
};

function stated(text, shown = text) {
  const [tone, sign] = states[text] ?? ["idle", "–"];
  return badge({ tone, sign, text: shown });
}

/** The view of the app. */
export function appView(host) {
  const ask = (signal) =>
    Promise.all([call("GET", "/v1/app", { signal }), call("GET", "/v1/app/background-refresh", { signal })]);

  const act = (target, said) => async () => {
    await post(target);
    toast(said);
    await load();
  };

  function draw(found, problem) {
    const [app, refresh] = found ?? [];
    render(
      host,
      h(
        "div",
        { class: "view-head" },
        h(
          "h1",
          {},
          app?.identifier ?? "App",
          " ",
          app && stated(app.state, app.state === "forceQuit" ? "Force quit" : "Active"),
        ),
        app && h(
          "div",
          { class: "row" },
          app.state === "forceQuit"
            ? button("Activate", act("/v1/app/activate", "Launches and fetches resume."), { class: "primary" })
            : button("Force quit…", () =>
              confirmThen(
                "Force quit the app?",
                "All tasks are cancelled, and there are no launches or fetches until the app is activated again.",
                "Force quit",
                act("/v1/app/force-quit", "All tasks are cancelled."),
                "Keep it active",
              ), { class: "danger-quiet" }),
        ),
      ),
      problem && notice(problem),
      app && webhook(app, load),
      app && usage(app),
      refresh && refreshing(refresh, load),
    );
  }

  const { load, close } = refreshed(ask, draw, 5000);
  return { close };
}

function webhook({ webhook }, load) {
  return section(
    "Webhook",
    {
      aside: [
        button("Ping", ping, { class: "small" }),
        button("Change…", () => openWebhook(webhook, load), { class: "small", "aria-haspopup": "dialog" }),
      ],
    },
    facts([
      ["URL", webhook.url ? h("code", {}, webhook.url) : h("span", { class: "muted" }, "None. Launches are parked.")],
      ["State", [stated(webhook.state), webhook.disabledReason && ` ${webhook.disabledReason}`]],
      ["Deadline", `${duration(webhook.launchDeadline)} to complete a launch`],
      ["Events within", webhook.includeEvents || "none"],
    ]),
  );
}

async function ping() {
  const attempt = await post("/v1/app/webhook/ping");
  toast(
    attempt.error
      ? `The attempt failed: ${attempt.error}`
      : `The receiver responded with ${attempt.statusCode} in ${duration(attempt.duration)}.`,
  );
}

function openWebhook(webhook, load) {
  dialog("Webhook", () => [
    field(
      "URL",
      h("input", {
        type: "url",
        name: "url",
        value: webhook.url ?? "",
        autofocus: true,
        placeholder: "https://app.example/hook",
      }),
      "Empty for none.",
    ),
    field(
      "State",
      choice("state", [["enabled", "Enabled"], ["paused", "Paused"], ["disabled", "Disabled"]], webhook.state),
    ),
  ], {
    submit: "Change",
    async action(form) {
      await call("PATCH", "/v1/app", {
        body: { webhook: { url: form.get("url").trim() || null, state: form.get("state") } },
      });
      toast("Changed.");
      await load();
    },
  });
}

function usage({ usage, limits, createdAt }) {
  const meter = (used, limit, shown) =>
    h(
      "div",
      { class: "progress-cell" },
      limit !== null && bar(limit > 0 ? Math.min(1, used / limit) : 0, "Used", used >= limit ? "bad" : "run"),
      h("span", { class: "figure" }, `${shown(used)} of ${limit === null ? "any number" : shown(limit)}`),
    );
  return section(
    "Usage",
    {},
    facts([
      ["Unfinished tasks", meter(usage.tasks, limits.tasks, count)],
      ["Stored bytes", meter(usage.storedBytes, limits.storedBytes, bytes)],
      ["Created", moment(createdAt)],
    ]),
  );
}

function refreshing(refresh, load) {
  const interval = refresh.minimumBackgroundFetchInterval;
  const simulate = async () => {
    const launch = await post("/v1/app/background-refresh/simulate");
    toast(`A fetch begins: ${launch.launchId}.`);
    await load();
  };
  return section(
    "Background refresh",
    {
      aside: [
        button("Fetch now", simulate, { class: "small" }),
        button("Interval…", () => openInterval(interval, load), { class: "small", "aria-haspopup": "dialog" }),
      ],
    },
    facts([
      ["Interval", typeof interval === "number" ? duration(interval) : interval],
      ["Status", stated(refresh.backgroundRefreshStatus)],
      ["Next fetch", refresh.nextFetchAt ? time(refresh.nextFetchAt) : "none"],
      ["Why", refresh.why],
    ]),
    refresh.history.length === 0 ? empty("No fetches yet", "The results of fetches will be shown here.") : table(
      "Past fetches",
      [{ title: "When" }, { title: "Result" }, { title: "Took", number: true }, { title: "Launch", class: "wide" }],
      refresh.history.map(({ launchId, at, duration: took, result }) => {
        const [tone, text, sign] = fetchResults[result] ?? ["run", "In flight", "▸"];
        return {
          key: launchId,
          cells: [
            time(at),
            badge({ tone, text, sign }),
            duration(took),
            h("a", { href: link(["launches", launchId]) }, h("code", {}, launchId)),
          ],
        };
      }),
    ),
  );
}

function openInterval(interval, load) {
  dialog("Fetch interval", () => [
    field(
      "Interval",
      choice("word", [["never", "Never"], ["minimum", "As often as allowed (15 minutes)"], [
        "seconds",
        "At least every …",
      ]], typeof interval === "number" ? "seconds" : interval),
    ),
    field(
      "Minutes",
      h("input", {
        type: "number",
        name: "minutes",
        min: 15,
        value: typeof interval === "number" ? interval / 60 : 60,
      }),
      "For the last choice; at least 15.",
    ),
  ], {
    submit: "Set",
    async action(form) {
      const word = form.get("word");
      await call("PUT", "/v1/app/background-refresh", {
        body: { minimumBackgroundFetchInterval: word === "seconds" ? Number(form.get("minutes")) * 60 : word },
      });
      await load();
    },
  });
}
