// The request and response of a task.

import { send } from "./api.js";
import { h } from "./dom.js";
import { addressOf, bytes, fileName } from "./format.js";
import { attempt, button, copyable, facts, section, time, toast } from "./parts.js";

/** The largest content that is saved through the page's memory. */
const savedThroughMemory = 256 * 1024 * 1024;

/** The response, and the content. */
export function result(task, target) {
  const { response, content } = task;
  if (!response && !content) return null;
  return section(
    "Response",
    {
      aside: content && button("Save content", () => save(task, target)),
    },
    facts([
      ["Status", response?.statusCode],
      ["From", response?.url && h("code", {}, response.url)],
      ["Content", content && `${bytes(content.length)}${response?.mimeType ? `, ${response.mimeType}` : ""}`],
      [content?.digest?.algorithm ?? "Digest", content && copyable(content.digest.value, "digest")],
      ["Expires", content && (content.expiresAt ? time(content.expiresAt) : "after its event is acknowledged")],
      ["Moved to", task.destination && h("code", {}, destinationOf(task.destination))],
    ]),
    headerTable("Header fields of the response", response?.headers),
  );
}

function destinationOf({ root, path, bucket, key }) {
  return bucket === undefined ? `${root}/${path}` : `s3://${bucket}/${key}`;
}

/** The request. */
export function request(task) {
  const now = task.currentRequest ?? task.originalRequest;
  const [asked, current] = [addressOf(task.originalRequest), addressOf(now)];
  return section(
    "Request",
    {},
    facts([
      ["URL", copyable(asked, "URL")],
      ["Method", now.method],
      ["Now at", current !== asked && h("code", {}, current)],
      [
        "Mirrors",
        task.mirrors?.length > 0 &&
        h("ul", { class: "plain-list" }, task.mirrors.map((url) => h("li", {}, h("code", {}, url)))),
      ],
      [
        "Redirects",
        task.redirects?.length > 0 && h(
          "ol",
          { class: "plain-list" },
          task.redirects.map(({ statusCode, to }) => h("li", {}, `${statusCode} to `, h("code", {}, to))),
        ),
      ],
      ["Group", task.group],
      ["Priority", task.priority],
      ["Begins", task.earliestBeginDate && time(task.earliestBeginDate)],
      [
        "Expected digest",
        task.expectedDigest && h("code", {}, `${task.expectedDigest.algorithm} ${task.expectedDigest.value}`),
      ],
      ["Metadata", Object.keys(task.metadata ?? {}).length > 0 && h("code", {}, JSON.stringify(task.metadata))],
    ]),
    headerTable("Header fields of the request", now.headers),
  );
}

function headerTable(title, headers) {
  const rows = Object.entries(headers ?? {});
  return rows.length > 0 &&
    h(
      "details",
      { class: "fold" },
      h("summary", {}, `${title} (${rows.length})`),
      facts(rows.map(([name, value]) => [name, h("code", {}, value)]), { class: "facts wide-names" }),
    );
}

async function save(task, target) {
  if (task.content.length > savedThroughMemory) {
    toast(`The content is too large for the page. Fetch it with curl: GET ${target}/content`);
    return;
  }
  await attempt(async () => {
    const response = await send("GET", `${target}/content`);
    const url = URL.createObjectURL(await response.blob());
    h("a", { href: url, download: task.response?.suggestedFilename ?? fileName(addressOf(task.originalRequest)) }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  });
}
