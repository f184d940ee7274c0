// Server-sent events by fetch, because EventSource cannot send a key.

import { Problem, query, send } from "./api.js";

const longestPause = 15_000;

/**
 * Parses a stream of server-sent events incrementally (WHATWG HTML, section 9.2).
 *
 * @param {(data: string, id: string|null) => void} receive
 * @returns {(text: string) => void} The parser of the next piece.
 */
export function eventParser(receive) {
  let rest = "";
  let data = [];
  let id = null;
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) receive(data.join("\n"), id);
        data = [];
        id = null;
      } else if (line.startsWith("data:")) {
        data.push(line.slice(line[5] === " " ? 6 : 5));
      } else if (line.startsWith("id:")) {
        id = line.slice(3).trim();
      }
    }
  };
}

/**
 * Follows the events of a session without attaching to it, until `signal` ends it. Reconnects after interruptions.
 *
 * @param {string} target The path of the events.
 * @param {{after: number, signal: AbortSignal, receive: (event: object) => void, state: (state: string) => void,
 *   lost: () => void}} options `state` hears `live` and `waiting`; `lost` hears that events in between are gone.
 */
export async function follow(target, { after, signal, receive, state, lost }) {
  let last = after;
  let pause = 500;
  while (!signal.aborted) {
    try {
      const response = await send("GET", target + query({ attach: "false", after: last }), {
        headers: { Accept: "text/event-stream" },
        signal,
      });
      state("live");
      pause = 500;
      const parse = eventParser((data) => {
        const event = JSON.parse(data);
        if (event.seq !== null && event.seq !== undefined) last = event.seq;
        receive(event);
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        parse(value);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && [401, 403, 404].includes(error.status)) return state("ended");
      if (error instanceof Problem && ["events-expired", "cursor-invalid"].includes(error.code)) {
        last = error.fields.oldestSeq ? error.fields.oldestSeq - 1 : error.fields.lastSeq;
        lost();
      }
    }
    if (signal.aborted) return;
    state("waiting");
    await sleep(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, longestPause);
  }
}

/** Waits some milliseconds, or until `signal`. */
export function sleep(milliseconds, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener("abort", end);
  });
}

/**
 * Calls repeatedly while the page is visible, `period` after the end of the last call. A call that fails ends nothing.
 *
 * @param {() => Promise<void>} work
 * @param {number} period Milliseconds.
 * @param {AbortSignal} signal
 */
export async function poll(work, period, signal) {
  while (!signal.aborted) {
    try {
      if (!document.hidden) await work();
    } catch (error) {
      console.error(error);
    }
    await sleep(period, signal);
  }
}

/**
 * Requests the data of a view, and draws the last response and the problem of a later request.
 *
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} ask
 * @param {(found: T|null, problem: Error|null) => void} draw
 * @param {number} [period] The interval of repeated requests in milliseconds.
 * @returns {{load: () => Promise<void>, show: () => void, close: () => void}} `load` sends a request now, `show` only draws.
 */
export function refreshed(ask, draw, period) {
  const ender = new AbortController();
  let found = null;
  let problem = null;
  let asked = 0;
  const show = () => draw(found, problem);

  async function load() {
    asked += 1;
    const turn = asked;
    const [answer, refusal] = await ask(ender.signal).then((answer) => [answer, null], (error) => [found, error]);
    // A response to an earlier query, perhaps with another filter, is too late.
    if (ender.signal.aborted || turn !== asked) return;
    [found, problem] = [answer, refusal];
    show();
  }

  if (period) poll(load, period, ender.signal);
  else load();
  return { load, show, close: () => ender.abort() };
}
