// Reading back a session's log of events, which can be long.

import { call, path, query } from "./api.js";

const pageSize = 200;
/** Events of one commit have one time, and clocks may step a little. */
const slack = 5000;
const mostPages = 40;

/**
 * A page of the log.
 *
 * @param {string} session
 * @param {number} after
 * @returns {Promise<{items: object[], lastSeq: number, acknowledgedSeq: number}>} Where events behind `after` have been
 *   dropped, the oldest there are.
 */
export async function eventsAfter(session, after, limit = pageSize, signal = undefined) {
  const target = `${path("sessions", session)}/events`;
  try {
    return await call("GET", target + query({ after: Math.max(0, after), limit }), { signal });
  } catch (error) {
    if (error.code !== "events-expired") throw error;
    return call("GET", target + query({ after: error.fields.oldestSeq - 1, limit }), { signal });
  }
}

/**
 * The metrics of a completed task. The log has no index by task, but its times rise: so the place is found by halving.
 *
 * @returns {Promise<object|null>} The data of its `task.didFinishCollectingMetrics`; null where the log has lost it.
 */
export async function findMetrics(session, task, signal) {
  const wanted = Date.parse(task.completedAt) - slack;
  const first = await eventsAfter(session, 0, 1, signal);
  if (first.items.length === 0) return null;
  let low = first.items[0].seq - 1;
  let high = first.lastSeq;
  while (high - low > pageSize) {
    const middle = Math.floor((low + high) / 2);
    const { items: [event] } = await eventsAfter(session, middle, 1, signal);
    if (event && Date.parse(event.occurredAt) < wanted) low = middle;
    else high = middle;
  }
  for (let page = 0; page < mostPages; page += 1) {
    const { items } = await eventsAfter(session, low, pageSize, signal);
    const found = items.find((event) =>
      event.taskIdentifier === task.taskIdentifier && event.type === "task.didFinishCollectingMetrics"
    );
    if (found) return found.data;
    const last = items.at(-1);
    if (!last || Date.parse(last.occurredAt) > wanted + 2 * slack) return null;
    low = last.seq;
  }
  return null;
}
