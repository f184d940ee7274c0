// Requests to the service, and its refusals in words.

import { forgetKey, keyOf } from "./keys.js";

/** A refusal of the service, or a failed request. `fields` are the members of its problem document. */
export class Problem extends Error {
  constructor(status, fields) {
    super(fields.detail || fields.title || `The service responded with ${status}.`);
    this.status = status;
    this.code = fields.code ?? "";
    this.fields = fields;
  }

  /** Whether a retry may succeed. */
  get mayPass() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** The faults of single members, one per line. */
  get lines() {
    return (this.fields.errors ?? []).map(({ pointer, detail }) => (pointer ? `${pointer}: ${detail}` : detail));
  }
}

/**
 * Sends a request and reads its JSON.
 *
 * @param {string} method
 * @param {string} path
 * @param {object} [options] `{body, audience, key, headers, signal}`; the audience is `app`, `operator` or `public`.
 * @returns {Promise<any>} The response's JSON, or its text for other types; null without a body.
 * @throws {Problem}
 */
export async function call(method, path, options = {}) {
  const response = await send(method, path, options);
  const type = response.headers.get("Content-Type") ?? "";
  if (response.status === 204) return null;
  return /json/.test(type) ? response.json() : response.text();
}

/** Like `call`, for callers that need the response's head or its bytes. */
export async function send(method, path, { body, audience = "app", key, headers = {}, signal } = {}) {
  const fields = { ...headers };
  const secret = key ?? keyOf(audience);
  if (secret) fields.Authorization = `Bearer ${secret}`;
  if (body !== undefined) fields["Content-Type"] ??= "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: fields,
      signal,
      credentials: "omit",
      cache: "no-store",
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { title: "No answer", detail: "The service cannot be reached. It may be restarting." });
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.status === 401 && !key && secret) forgetKey(audience);
  throw problem;
}

async function problemOf(response) {
  try {
    return new Problem(response.status, await response.json());
  } catch {
    return new Problem(response.status, { title: `The service responded with ${response.status} ${response.statusText}.` });
  }
}

/** A path of segments, each encoded. */
export function path(...segments) {
  return "/v1/" + segments.map((segment) => encodeURIComponent(segment)).join("/");
}

/** A query of the members that have a value. */
export function query(members) {
  const given = Object.entries(members).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? "?" + new URLSearchParams(given) : "";
}

/** Commands that are executed once even if they are sent twice. */
export function post(target, body, options = {}) {
  const headers = { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()).slice(2), ...options.headers };
  return call("POST", target, { ...options, body, headers });
}
