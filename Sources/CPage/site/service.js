// The operator's view of the service: load, queue, disk and throughput.

import { call } from "./api.js";
import { h, render } from "./dom.js";
import { bytes, count, rate } from "./format.js";
import { parseMetrics, Rates, total } from "./metrics.js";
import { badge, facts, notice, section } from "./parts.js";
import { plot, Series } from "./plot.js";
import { poll } from "./stream.js";

const period = 3000;
const span = 100 * period;
const waiting = ["queued", "scheduled", "awaitingAnswer", "waitingForDisk", "following", "quarantined"];
const outcomes = [["succeeded", "good", "ok"], ["httpError", "warn", "HTTP error"], ["failed", "bad", "failed"]];

/** The view of the service. */
export function serviceView(host) {
  const ender = new AbortController();
  const series = new Map();
  const rates = new Rates();
  let ready = null;
  let conditions = null;
  let problem = null;

  const of = (name) => {
    if (!series.has(name)) series.set(name, new Series(101));
    return series.get(name);
  };
  const add = (name, value, at) => {
    if (value !== undefined && !Number.isNaN(value)) of(name).add(value, at);
  };

  async function load() {
    const at = Date.now();
    try {
      const [text, health, declared] = await Promise.all([
        call("GET", "/metrics", { audience: "operator", signal: ender.signal }),
        call("GET", "/readyz", { audience: "public", signal: ender.signal }).then(
          () => ({ ready: true }),
          (error) => ({ ready: false, why: error.message }),
        ),
        call("GET", "/v1/system/conditions", { audience: "operator", signal: ender.signal }),
      ]);
      ready = health;
      conditions = declared;
      problem = null;
      note(parseMetrics(text), at);
    } catch (error) {
      if (ender.signal.aborted) return;
      problem = error;
    }
    show();
  }

  function note(samples, at) {
    const grown = (name, labels) => rates.of(JSON.stringify([name, labels]), total(samples, name, labels), at);
    add("running", total(samples, "urlsessiond_transfers_running"), at);
    add("waiting", waiting.reduce((sum, phase) => sum + (total(samples, "urlsessiond_tasks", { phase }) ?? 0), 0), at);
    add("load", total(samples, "urlsessiond_load"), at);
    add("free", total(samples, "urlsessiond_free_bytes"), at);
    add("received", grown("urlsessiond_received_bytes_total"), at);
    add("sent", grown("urlsessiond_sent_bytes_total"), at);
    add("requests", grown("urlsessiond_http_requests_total"), at);
    add("retries", grown("urlsessiond_task_retries_total"), at);
    for (const [outcome] of outcomes) add(outcome, grown("urlsessiond_tasks_completed_total", { outcome }) ?? 0, at);
    add("launched", grown("urlsessiond_launch_attempts_total", { result: "success" }) ?? 0, at);
    add("unlaunched", grown("urlsessiond_launch_attempts_total", { result: "failure" }) ?? 0, at);
  }

  function show() {
    const perSecond = (value) => `${value >= 10 ? count(value) : value.toFixed(1)}/s`;
    const draw = (title, lines, options) =>
      h(
        "li",
        { class: "panel", key: title },
        plot(title, lines.map(([name, tone, key]) => ({ name, tone, series: of(key) })), { span, ...options }),
      );
    render(
      host,
      h(
        "div",
        { class: "view-head" },
        h(
          "h1",
          {},
          "Service ",
          ready &&
            badge(
              ready.ready ? { tone: "good", sign: "✓", text: "Ready" } : { tone: "bad", sign: "✕", text: "Not ready" },
            ),
        ),
      ),
      ready?.why && h("div", { class: "notice bad", role: "alert" }, ready.why),
      problem && notice(problem),
      h(
        "ul",
        { class: "plots", "aria-label": "Plots of the last five minutes" },
        draw("Transfers", [["running", "run", "running"]], { format: count }),
        draw("Waiting", [["waiting", "warn", "waiting"]], { format: count }),
        draw("Bytes", [["in", "run", "received"], ["out", "good", "sent"]], { format: rate, base: 1024, least: 1024 }),
        draw("Tasks completed", outcomes.map(([outcome, tone, name]) => [name, tone, outcome]), { format: perSecond }),
        draw("Retries", [["retries", "warn", "retries"]], { format: perSecond }),
        draw("Webhooks", [["taken", "good", "launched"], ["failed", "bad", "unlaunched"]], { format: perSecond }),
        draw("Load", [["load", "warn", "load"]], { format: (value) => value.toFixed(2) }),
        draw("Free disk", [["free", "good", "free"]], { format: bytes, base: 1024 }),
        draw("API requests", [["requests", "run", "requests"]], { format: perSecond }),
      ),
      conditions && declaredConditions(conditions),
    );
  }

  poll(load, period, ender.signal);
  return { close: () => ender.abort() };
}

function declaredConditions({ network, power, maximumLoad, windows, backgroundRefreshStatus }) {
  const said = (members) =>
    Object.entries(members).filter(([, value]) => value).map(([name]) => name).join(", ") || "none";
  return section(
    "Declared conditions",
    {},
    facts([
      ["Network", network.reachable ? said(network) : "not reachable"],
      ["Power", said(power)],
      ["Maximum load", maximumLoad ?? "any"],
      [
        "Hours",
        windows.length === 0
          ? "always"
          : windows.map(({ days, from, to }) => `${days.join(", ")} ${from}–${to}`).join("; "),
      ],
      ["Background refresh", backgroundRefreshStatus],
    ]),
  );
}
