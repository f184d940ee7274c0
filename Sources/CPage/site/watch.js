// One session, watched: its state, its live events, and the throughput of its transfers.

import { call, path, Problem } from "./api.js";
import { Series } from "./plot.js";
import { follow, poll, sleep } from "./stream.js";

const keptEvents = 1000;
const tick = 500;
const retryPause = 2000;
const mostRates = 500;
/** The weight of the last tick in a speed: events and ticks are not synchronized. */
const freshness = 0.35;

function smoothed(series, speed) {
  const next = series.last === undefined ? speed : series.last + (speed - series.last) * freshness;
  return next < 1 ? 0 : next;
}

/**
 * Watches a session from its creation until `close`. Listeners get `{tasks, events, problem}`: numbers of tasks that changed
 * otherwise than by moving bytes, and how many events came, since they were last called.
 */
export class SessionWatch {
  constructor(identifier) {
    this.identifier = identifier;
    this.session = null;
    this.problem = null;
    this.state = "connecting";
    /** Events since the start of the watch, newest last. */
    this.events = [];
    /** Bytes per second of all transfers together, and of each by its task's number. */
    this.throughput = new Series();
    this.rates = new Map();
    /** Each task's bytes by its last live event: `{total, expected, kind}`. */
    this.progress = new Map();
    /** Tasks that have completed since the session was read. */
    this.completed = new Set();
    this.listeners = new Set();
    this.ender = new AbortController();
    this.changed = new Set();
    this.arrived = 0;
    this.moved = new Map();
    this.isStale = false;
    this.begin();
  }

  /** Calls back about twice a second during activity. */
  onChange(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Ends the watch. */
  close() {
    this.ender.abort();
    this.listeners.clear();
  }

  /** Reads the session again. */
  async refresh() {
    const completed = [...this.completed];
    // An event that arrives during the request outdates its answer.
    this.isStale = false;
    try {
      this.session = await call("GET", path("sessions", this.identifier), { signal: this.ender.signal });
      this.problem = null;
      // The session's own figures now include these bytes.
      for (const task of completed) {
        this.progress.delete(task);
        this.completed.delete(task);
      }
    } catch (error) {
      if (this.ender.signal.aborted) return;
      this.problem = error instanceof Problem ? error : null;
      // Without a problem the response was interrupted.
      if (this.problem?.mayPass ?? true) this.isStale = true;
    }
  }

  async begin() {
    const { signal } = this.ender;
    await this.refresh();
    this.tell();
    while (!this.session) {
      // Without a problem the response was interrupted.
      if (this.problem && !this.problem.mayPass) return;
      await sleep(retryPause, signal);
      if (signal.aborted) return;
      await this.refresh();
      this.tell();
    }
    follow(`${path("sessions", this.identifier)}/events`, {
      after: this.session.lastEventSeq,
      signal,
      receive: (event) => this.receive(event),
      state: (state) => {
        // Failed reads of the interruption can now succeed.
        if (state === "live" && this.state === "waiting") this.changed.add("all");
        this.state = state;
        this.isStale = true;
      },
      lost: () => {
        this.changed.add("all");
      },
    });
    poll(() => this.beat(), tick, signal);
  }

  receive(event) {
    const task = event.taskIdentifier;
    if (event.type === "task.didWriteData") {
      this.move(task, "download", event.data.totalBytesWritten, event.data.totalBytesExpectedToWrite);
    } else if (event.type === "task.didSendBodyData") {
      this.move(task, "upload", event.data.totalBytesSent, event.data.totalBytesExpectedToSend);
    } else {
      this.isStale = true;
      if (task) this.changed.add(task);
      if (event.type === "task.didComplete") this.completed.add(task);
      this.events.push(event);
      if (this.events.length > keptEvents) this.events.splice(0, this.events.length - keptEvents);
      this.arrived += 1;
    }
  }

  move(task, kind, total, expected) {
    // The first event of a stream covers all earlier ones.
    const before = this.progress.get(task)?.total ?? total;
    this.moved.set(task, (this.moved.get(task) ?? 0) + Math.max(0, total - before));
    this.progress.set(task, { kind, total, expected });
  }

  /** Bytes of transfers in flight that are not yet in the session's own figures. */
  moving(kind) {
    return [...this.progress.values()].reduce((sum, one) => sum + (one.kind === kind ? one.total : 0), 0);
  }

  /** The number of transfers of known length, and their remaining bytes. */
  remaining() {
    const known = [...this.progress].filter(([task, { expected }]) => expected > 0 && !this.completed.has(task));
    return {
      transfers: known.length,
      bytes: known.reduce((sum, [, { total, expected }]) => sum + Math.max(0, expected - total), 0),
    };
  }

  async beat() {
    const now = Date.now();
    const seconds = (now - (this.lastBeat ?? now - tick)) / 1000;
    this.lastBeat = now;
    let sum = 0;
    for (const [task, moved] of this.moved) {
      if (!this.rates.has(task)) this.rates.set(task, new Series(48));
      sum += moved;
    }
    for (const task of this.completed) this.rates.delete(task);
    // A separate series for each of very many transfers would be useless.
    for (const task of this.rates.keys()) if (this.rates.size > mostRates) this.rates.delete(task);
    for (const [task, series] of this.rates) series.add(smoothed(series, (this.moved.get(task) ?? 0) / seconds), now);
    this.throughput.add(smoothed(this.throughput, sum / seconds), now);
    this.moved.clear();
    if (this.isStale && now - (this.lastRefresh ?? 0) >= 1000) {
      this.lastRefresh = now;
      await this.refresh();
    }
    this.tell();
  }

  tell() {
    const news = { tasks: this.changed, events: this.arrived, problem: this.problem };
    this.changed = new Set();
    this.arrived = 0;
    for (const listener of this.listeners) listener(news);
  }
}
