// The segments of a download.

import { h } from "./dom.js";
import { bytes, hostOf, percent } from "./format.js";
import { section, table } from "./parts.js";
import { bar } from "./plot.js";

const width = 1000;

/** The map of a task's segments, and the same as a table. */
export function segmentMap(task) {
  const segments = task.segmentStates;
  const whole = task.countOfBytesExpectedToReceive ??
    Math.max(...segments.map(({ offset, length }) => offset + length));
  const x = (offset) => (offset / whole) * width;
  const sources = [task.originalRequest?.url, ...(task.mirrors ?? [])];
  return section(
    "Segments",
    { aside: h("span", { class: "muted" }, `${segments.length} in ${bytes(whole)}`) },
    h(
      "div",
      { class: "pad stack" },
      h(
        "svg",
        {
          class: "segment-map",
          viewBox: `0 0 ${width} 24`,
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": "The parts of the content that have arrived; the table below tells the same",
        },
        h("rect", { class: "whole", x: 0, y: 0, width, height: 24 }),
        segments.map(({ offset, received }, index) =>
          h("rect", {
            class: index % 2 ? "part odd" : "part",
            x: x(offset).toFixed(2),
            y: 0,
            width: x(received).toFixed(2),
            height: 24,
          })
        ),
        segments.map(({ offset }) =>
          offset > 0 && h("rect", { class: "edge", x: (x(offset) - 0.75).toFixed(2), y: 0, width: 1.5, height: 24 })
        ),
      ),
      table(
        "Segments",
        [
          { title: "From" },
          { title: "Length", number: true, class: "wide" },
          { title: "Received" },
          { title: "Source" },
        ],
        segments.map(({ offset, length, received, source }, index) => ({
          key: offset,
          cells: [
            bytes(offset),
            bytes(length),
            h(
              "div",
              { class: "progress-cell" },
              bar(length ? received / length : 0, `Segment ${index + 1}`, received >= length ? "good" : "run"),
              h("span", { class: "figure" }, percent(length ? received / length : 0)),
            ),
            received >= length
              ? h("span", { class: "muted" }, "done")
              : source === null
              ? h("span", { class: "muted" }, "waits for a slot")
              : `${source === 0 ? "origin" : `mirror ${source}`} · ${hostOf(sources[source] ?? "")}`,
          ],
        })),
      ),
    ),
  );
}
