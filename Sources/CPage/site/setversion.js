// One version of a set: its progress, its failures and its source.

import { call, path, post } from "./api.js";
import { h, render } from "./dom.js";
import { bytes, count, moment } from "./format.js";
import { badge, button, confirmThen, copyable, empty, facts, notice, section, table, toast } from "./parts.js";
import { bar } from "./plot.js";
import { link } from "./route.js";
import { refreshed } from "./stream.js";
import { versionStatus } from "./words.js";

const inFlight = new Set(["expanding", "fetching", "verifying", "publishing"]);

/** Whether a version may still be published, and so be cancelled. */
export const canCancel = ({ state }) => inFlight.has(state);

/** The progress over all files of a version. */
export function progressOf({ version, state, files, bytes: amount }) {
  const done = files.fetched + files.reused;
  const fraction = files.total ? done / files.total : null;
  const isMoving = inFlight.has(state);
  return h(
    "div",
    { class: "progress-cell" },
    (isMoving || state === "failed") &&
      bar(fraction ?? (isMoving ? null : 0), `Progress of version ${version}`, isMoving ? "run" : "bad"),
    h("span", { class: "figure" }, `${count(done)} of ${count(files.total)} files`),
    h("span", { class: "figure muted" }, bytes(isMoving ? amount.fetched + amount.reused : amount.total)),
  );
}

/** Fetches the failed files of a version again. */
export async function retryVersion({ name, version, versionId }, load) {
  await post(`${path("sets", name, "versions", versionId)}/retry`);
  toast(`The failed files of ${version} are fetched again.`);
  await load();
}

/** Asks, and gives a version up. */
export function cancelVersion({ name, version, versionId }, load) {
  confirmThen(
    `Give version ${version} up?`,
    "Its tasks are cancelled. Readers keep the current version.",
    "Give it up",
    async () => {
      await post(`${path("sets", name, "versions", versionId)}/cancel`);
      toast(`Version ${version} is cancelled.`);
      await load();
    },
    "Keep it",
  );
}

/** The view of a version. */
export function setVersionView(host, route) {
  const [, name, id] = route.segments;
  const ask = (signal) => call("GET", path("sets", name, "versions", id), { signal });

  function draw(version, problem) {
    if (!version || problem?.status === 404) {
      render(
        host,
        problem && (problem.status === 404
          ? empty(
            "No such version",
            "It may have been removed.",
            h("a", { class: "button", href: link(["sets", name]) }, "All versions"),
          )
          : notice(problem)),
      );
      return;
    }
    const session = version.sessionIdentifier;
    render(
      host,
      h(
        "div",
        { class: "view-head" },
        h(
          "div",
          { class: "heading" },
          h(
            "p",
            { class: "crumbs" },
            h("a", { href: link(["sets"]) }, "Sets"),
            " / ",
            h("a", { href: link(["sets", name]), "data-key": "u" }, name),
          ),
          h("h1", {}, h("bdi", {}, version.version), " ", badge(versionStatus(version))),
        ),
        h(
          "div",
          { class: "row" },
          version.state === "failed" && button("Retry", () => retryVersion(version, load), { class: "primary" }),
          canCancel(version) &&
            button("Cancel…", () => cancelVersion(version, load), { "aria-haspopup": "dialog" }),
        ),
      ),
      problem && notice(problem),
      section("Progress", { class: "panel large-progress" }, h("div", { class: "pad" }, progressOf(version))),
      section(
        "Version",
        {},
        facts([
          ["Identifier", copyable(version.versionId, "the identifier")],
          ["Session", h("a", { href: link(["sessions", session]) }, session)],
          ["Tasks", h("a", { href: link(["sessions", session], { group: version.versionId }) }, "of this version")],
          ["Fetched", `${count(version.files.fetched)} files, ${bytes(version.bytes.fetched)}`],
          ["Reused", `${count(version.files.reused)} files, ${bytes(version.bytes.reused)}`],
          ["Failed", version.files.failed > 0 && `${count(version.files.failed)} files`],
          ["Source", version.source && sourceText(version.source)],
          ["Commit", version.commit && copyable(version.commit, "the commit")],
          ["Manifest digest", version.manifestDigest && copyable(version.manifestDigest, "the digest")],
          ["Created", moment(version.createdAt)],
          ["Published", version.publishedAt && moment(version.publishedAt)],
          ["Replaced", version.replacedAt && moment(version.replacedAt)],
          ["Ended", version.endedAt && moment(version.endedAt)],
          ...Object.entries(version.metadata),
        ]),
      ),
      version.failures.length > 0 && section(
        "Failures",
        {},
        table(
          "Failures",
          [{ title: "File" }, { title: "Fault" }, { title: "Task", class: "wide" }],
          version.failures.map(({ path: file, taskIdentifier, detail }, index) => ({
            key: `${index} ${file}`,
            cells: [
              file ? h("bdi", {}, file) : h("span", { class: "muted" }, "the version"),
              h("span", { class: "bad-text" }, detail),
              taskIdentifier === null
                ? "–"
                : h("a", { href: link(["sessions", session, "tasks", taskIdentifier]) }, `task ${taskIdentifier}`),
            ],
          })),
        ),
        version.files.failed > version.failures.length &&
          h("p", { class: "muted pad" }, `The first ${count(version.failures.length)} are shown.`),
      ),
    );
  }

  const { load, close } = refreshed(ask, draw, 2000);
  return { close };
}

function sourceText({ kind, repository, revision, url }) {
  return kind === "huggingface"
    ? [h("code", {}, repository), ` at ${revision}, of Hugging Face`]
    : [`${kind}: `, h("code", {}, url)];
}
