// The service's metrics, read as text (the Prometheus exposition format).

/**
 * Reads samples.
 *
 * @param {string} text
 * @returns {{name: string, labels: Record<string, string>, value: number}[]}
 */
export function parseMetrics(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const match = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[name] = value.replace(/\\(.)/g, "$1");
    }
    samples.push({ name: match[1], labels, value: Number(match[3]) });
  }
  return samples;
}

/** The sum of a metric's samples with the given labels; undefined if there is none. */
export function total(samples, name, labels = {}) {
  const own = samples.filter((sample) =>
    sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value)
  );
  return own.length === 0 ? undefined : own.reduce((sum, { value }) => sum + value, 0);
}

/** Converts counters into rates per second. A counter that fell was reset. */
export class Rates {
  constructor() {
    this.before = new Map();
  }

  /** The rate per second since the last call; undefined at the first. */
  of(name, value, at) {
    const last = this.before.get(name);
    if (value === undefined) return undefined;
    this.before.set(name, { value, at });
    if (!last || at <= last.at) return undefined;
    return Math.max(0, value < last.value ? value : value - last.value) / ((at - last.at) / 1000);
  }
}
