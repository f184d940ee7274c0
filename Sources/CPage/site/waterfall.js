// The requests of a task on one time axis, with their phases.

import { h } from "./dom.js";
import { bytes, clock, counted, duration } from "./format.js";
import { table } from "./parts.js";

const width = 1000;

const stages = [
  ["lookup", "Name lookup", "domainLookupStartDate", "domainLookupEndDate"],
  ["connect", "Connect", "connectStartDate", "connectEndDate"],
  ["tls", "TLS", "secureConnectionStartDate", "secureConnectionEndDate"],
  ["send", "Send", "requestStartDate", "requestEndDate"],
  ["wait", "Wait", "requestEndDate", "responseStartDate"],
  ["receive", "Receive", "responseStartDate", "responseEndDate"],
];

/**
 * How long each stage of a request took: `{kind, name, from, to}` in milliseconds since 1970. Those without times are
 * left out.
 */
export function stagesOf(transaction) {
  return stages.map(([kind, name, start, end]) => {
    const from = Date.parse(transaction[start]);
    const tlsStart = Date.parse(transaction.secureConnectionStartDate);
    // The handshake is part of the connection's time, and shown separately here.
    const to = kind === "connect" && !Number.isNaN(tlsStart) ? tlsStart : Date.parse(transaction[end]);
    return { kind, name, from, to };
  }).filter(({ from, to }) => !Number.isNaN(from) && !Number.isNaN(to) && to >= from);
}

function endOf(transaction) {
  return Math.max(
    Date.parse(transaction.responseEndDate) || 0,
    Date.parse(transaction.fetchStartDate),
    ...stagesOf(transaction).map(({ to }) => to),
  );
}

/**
 * The waterfall of a task's metrics, and the same as a table.
 *
 * @param {object} metrics The data of `task.didFinishCollectingMetrics`.
 */
export function waterfall(metrics) {
  const transactions = metrics.transactionMetrics ?? [];
  if (transactions.length === 0) return h("p", { class: "muted" }, "It ended without a request.");
  const begin = Math.min(...transactions.map(({ fetchStartDate }) => Date.parse(fetchStartDate)));
  const end = Math.max(begin + 1, ...transactions.map(endOf));
  const x = (moment) => ((moment - begin) / (end - begin)) * width;
  return h(
    "div",
    { class: "waterfall stack" },
    h(
      "p",
      { class: "legend", "aria-hidden": "true" },
      stages.map(([kind, name]) => h("span", {}, h("i", { class: `swatch ${kind}` }), name)),
    ),
    h(
      "div",
      {
        class: transactions.length > 16 ? "lanes dense" : "lanes",
        role: "img",
        "aria-label": `${counted(transactions.length, "request")} in ${
          duration((end - begin) / 1000)
        }; the table below tells the same`,
      },
      transactions.map((transaction, index) => lane(transaction, index, x)),
      h(
        "div",
        { class: "axis" },
        [0, 0.25, 0.5, 0.75, 1].map((part) =>
          h("span", {}, part === 0 ? "0" : duration(((end - begin) / 1000) * part))
        ),
      ),
    ),
    transactions.length > 8
      ? h(
        "details",
        { class: "fold" },
        h("summary", {}, `All ${transactions.length} requests`),
        details(transactions, begin),
      )
      : details(transactions, begin),
  );
}

function lane(transaction, index, x) {
  const bars = stagesOf(transaction);
  const start = x(Date.parse(transaction.fetchStartDate));
  const stop = x(endOf(transaction));
  return h(
    "div",
    { class: "lane" },
    h("span", { class: "lane-name" }, `${index + 1}`),
    h(
      "svg",
      { viewBox: `0 0 ${width} 16`, preserveAspectRatio: "none" },
      h("rect", { class: "whole", x: start.toFixed(1), y: 6, width: Math.max(1, stop - start).toFixed(1), height: 4 }),
      bars.map(({ kind, name, from, to }) =>
        h("rect", {
          class: kind,
          x: x(from).toFixed(1),
          y: 1,
          width: Math.max(1.5, x(to) - x(from)).toFixed(1),
          height: 14,
        }, h("title", { svg: true }, `${name}: ${duration((to - from) / 1000)}`))
      ),
    ),
    h(
      "span",
      { class: `lane-end ${transaction.error ? "bad-text" : ""}` },
      transaction.error ? "broke" : transaction.statusCode ?? "–",
    ),
  );
}

function details(transactions, begin) {
  const columns = [
    { title: "Request" },
    { title: "Began", number: true, class: "wide" },
    { title: "Lookup", number: true, class: "wide" },
    { title: "Connect", number: true, class: "wide" },
    { title: "TLS", number: true, class: "wide" },
    { title: "Wait", number: true, class: "wide" },
    { title: "Receive", number: true },
    { title: "Bytes", number: true, class: "wide" },
    { title: "Ended" },
  ];
  return table(
    "Requests",
    columns,
    transactions.map((transaction, index) => {
      const took = Object.fromEntries(
        stagesOf(transaction).map(({ kind, from, to }) => [kind, duration((to - from) / 1000)]),
      );
      const shown = (kind) => took[kind] ?? h("span", { class: "muted" }, "–");
      return {
        key: index,
        cells: [
          h(
            "div",
            { class: "name" },
            h("span", { class: "clip" }, h("span", { class: "muted" }, `${index + 1} `), transaction.url),
            h(
              "span",
              { class: "sub muted" },
              [
                transaction.networkProtocolName,
                transaction.negotiatedTLSProtocolVersion,
                transaction.isReusedConnection && "reused connection",
                transaction.isProxyConnection && "by proxy",
                transaction.remoteAddress && `${transaction.remoteAddress}:${transaction.remotePort}`,
                transaction.offset > 0 && `from ${bytes(transaction.offset)}`,
              ].filter(Boolean).join(" · "),
            ),
          ),
          h(
            "span",
            { title: clock(transaction.fetchStartDate) },
            `+${duration((Date.parse(transaction.fetchStartDate) - begin) / 1000)}`,
          ),
          shown("lookup"),
          shown("connect"),
          shown("tls"),
          shown("wait"),
          shown("receive"),
          bytes(transaction.countOfResponseBodyBytesReceived || transaction.countOfRequestBodyBytesSent),
          transaction.error ? h("span", { class: "bad-text" }, transaction.error) : transaction.statusCode ?? "–",
        ],
      };
    }),
  );
}
