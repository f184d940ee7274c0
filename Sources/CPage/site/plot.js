// Plots as SVG, with their last value as text for screen readers.

import { h } from "./dom.js";

/** Values over time, a bounded number of them. */
export class Series {
  constructor(capacity = 120) {
    this.capacity = capacity;
    this.points = [];
  }

  /** Adds a value at a moment in milliseconds. */
  add(value, at = Date.now()) {
    this.points.push({ at, value });
    if (this.points.length > this.capacity) this.points.shift();
  }

  get last() {
    return this.points.at(-1)?.value;
  }

  get highest() {
    return this.points.reduce((highest, { value }) => Math.max(highest, value), 0);
  }
}

/** A round number for the label of an axis, not below `value`. */
export function roundUp(value, base = 10) {
  if (!(value > 0)) return 1;
  const power = base ** Math.floor(Math.log(value) / Math.log(base));
  const steps = base === 1024 ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [1, 2, 2.5, 5, 10];
  return steps.find((step) => step * power >= value) * power;
}

/**
 * A plot over time with its highest value at the axis.
 *
 * @param {string} title
 * @param {{name: string, tone: string, series: Series}[]} lines
 * @param {{format: (value: number) => string, base?: number, least?: number, span?: number}} options `least`: of the
 *   axis' end; `span`: milliseconds.
 */
export function plot(title, lines, { format, base = 10, least = 1, span = 120_000 }) {
  const width = 600;
  const height = 120;
  const ceiling = roundUp(Math.max(least, ...lines.map(({ series }) => series.highest)), base);
  const end = Math.max(...lines.map(({ series }) => series.points.at(-1)?.at ?? 0));
  const place = (
    { at, value },
  ) => [width - ((end - at) / span) * width, height - 2 - (Math.min(value, ceiling) / ceiling) * (height - 8)];
  const said = lines.map(({ name, series }) => `${name} ${series.last === undefined ? "–" : format(series.last)}`).join(
    ", ",
  );
  return h(
    "figure",
    { class: "plot" },
    h(
      "figcaption",
      {},
      h("span", { class: "plot-title" }, title),
      h(
        "span",
        { class: "legend" },
        lines.map(({ name, tone, series }) =>
          h(
            "span",
            {},
            h("i", { class: `swatch ${tone}`, "aria-hidden": "true" }),
            lines.length > 1 ? `${name} ` : "",
            h("b", {}, series.last === undefined ? "–" : format(series.last)),
          )
        ),
      ),
    ),
    h(
      "div",
      { class: "plot-area" },
      h(
        "svg",
        {
          viewBox: `0 0 ${width} ${height}`,
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `${title}: ${said}`,
        },
        [0.25, 0.5, 0.75].map((part) =>
          h("line", { class: "grid", x1: 0, x2: width, y1: height * part, y2: height * part })
        ),
        lines.map(({ tone, series }) => {
          const points = series.points.filter(({ at }) => end - at <= span).map(place);
          if (points.length === 0) return null;
          const text = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
          return h(
            "g",
            { class: tone },
            lines.length === 1 &&
              h("path", {
                class: "area",
                d: `M${points[0][0].toFixed(1)},${height} L${text.replaceAll(" ", " L")} L${
                  points.at(-1)[0].toFixed(1)
                },${height} Z`,
              }),
            h("polyline", { class: "line", points: text }),
          );
        }),
      ),
      h("span", { class: "ceiling", "aria-hidden": "true" }, format(ceiling)),
    ),
  );
}

/** A line without an axis, as wide as a word. */
export function spark(series, label) {
  const points = series?.points ?? [];
  if (points.length < 2) return h("span", { class: "spark" });
  const highest = series.highest || 1;
  const first = series.capacity - points.length;
  const text = points.map(({ value }, index) =>
    `${(((first + index) / (series.capacity - 1)) * 80).toFixed(1)},${(21 - (value / highest) * 19).toFixed(1)}`
  ).join(" ");
  return h(
    "svg",
    { class: "spark run", viewBox: "0 0 80 22", role: "img", "aria-label": label },
    h("polyline", { class: "line", points: text }),
  );
}

/** The completed fraction; without a total it only shows activity. */
export function bar(fraction, label, tone = "run") {
  return h("progress", { class: `bar ${tone}`, max: "1", value: fraction ?? null, "aria-label": label });
}
