// Sets: names of many files that are published as one version.

import { call, path, post, query } from "./api.js";
import { h, render } from "./dom.js";
import { bytes, count, counted, duration, moment } from "./format.js";
import { badge, button, confirmThen, empty, facts, notice, pager, section, table, time, toast } from "./parts.js";
import { go, link } from "./route.js";
import { refreshed } from "./stream.js";
import { canCancel, cancelVersion, progressOf, retryVersion } from "./setversion.js";
import { versionStatus } from "./words.js";

/** The list of sets. */
export function setsView(host, route) {
  let place = route.query;
  const ask = (signal) => call("GET", "/v1/sets" + query({ limit: 100, cursor: place.cursor }), { signal });

  function draw(page, problem) {
    render(
      host,
      h("div", { class: "view-head" }, h("h1", {}, "Sets")),
      problem && notice(problem),
      page && (page.items.length === 0
        ? empty(
          "No sets yet",
          "A set is a name that readers follow to one complete version of many files. Create one with PUT /v1/sets/NAME or urlsession set publish.",
        )
        : table("Sets", [
          { title: "Set" },
          { title: "Current version" },
          { title: "Files", number: true, class: "wide" },
          { title: "Bytes", number: true, class: "wide" },
          { title: "Kept", number: true, class: "widest" },
          { title: "Published", class: "wide" },
        ], page.items.map(setRow))),
      page &&
        pager(
          !place.cursor,
          page.nextCursor && link(["sets"], { cursor: page.nextCursor }),
          link(["sets"]),
        ),
    );
  }

  const { load, close } = refreshed(ask, draw, 3000);
  return {
    update(next) {
      place = next.query;
      load();
    },
    close,
  };
}

function setRow({ name, destination, current, versions }) {
  return {
    key: name,
    cells: [
      h(
        "div",
        { class: "name" },
        h("a", { class: "title", "data-row": true, href: link(["sets", name]) }, h("bdi", {}, name)),
        destination && h("span", { class: "sub" }, h("code", { class: "clip" }, placeOf(destination))),
      ),
      current
        ? h("a", { href: link(["sets", name, current.versionId]) }, current.version)
        : h("span", { class: "muted" }, "none"),
      current ? count(current.files) : "–",
      current ? bytes(current.bytes) : "–",
      count(versions.length),
      time(current?.publishedAt),
    ],
  };
}

function placeOf({ root, path: folder, bucket, prefix }) {
  return bucket === undefined ? `${root}: ${folder}` : `s3://${bucket}/${prefix}`;
}

/** One set with its versions, the newest first. */
export function setView(host, route) {
  const [, name] = route.segments;
  let place = route.query;
  const ask = (signal) => {
    const page = query({ order: "desc", limit: 50, cursor: place.cursor });
    return Promise.all([
      call("GET", path("sets", name), { signal }),
      call("GET", path("sets", name, "versions") + page, { signal }),
    ]);
  };

  function draw(found, problem) {
    const [set, page] = found ?? [];
    if (!set || problem?.status === 404) {
      render(
        host,
        problem && (problem.status === 404
          ? empty(
            "No such set",
            `There is no set ${name}. It may have been deleted.`,
            h("a", { class: "button", href: link(["sets"]) }, "All sets"),
          )
          : notice(problem)),
      );
      return;
    }
    render(
      host,
      h(
        "div",
        { class: "view-head" },
        h(
          "div",
          { class: "heading" },
          h("p", { class: "crumbs" }, h("a", { href: link(["sets"]), "data-key": "u" }, "Sets")),
          h("h1", {}, h("bdi", {}, name)),
        ),
        button("Delete…", () => openDelete(set), { class: "danger-quiet", "aria-haspopup": "dialog" }),
      ),
      problem && notice(problem),
      section(
        "Set",
        {},
        facts([
          ["Current version", set.current ? set.current.version : "none is published yet"],
          ["Destination", set.destination ? h("code", {}, placeOf(set.destination)) : "none: read through the API"],
          ["Layout", set.destination && set.layout],
          ["Keeps", `${counted(set.keep, "further version")}, each for ${duration(set.grace)} at least`],
          ["Cache policy", h("code", {}, set.cachePolicy)],
          ["Created", moment(set.createdAt)],
        ]),
      ),
      page.items.length === 0 ? empty("No versions yet", "Create one with POST /v1/sets/NAME/versions.") : section(
        "Versions",
        {},
        table("Versions", [
          { title: "Version" },
          { title: "State", class: "wide" },
          { title: "Progress" },
          { title: "Failed", number: true, class: "widest" },
          { title: "Created", class: "wide" },
          { title: "Change", hidden: true },
        ], page.items.map((version) => versionRow(version, set, load))),
      ),
      pager(
        !place.cursor,
        page.nextCursor && link(["sets", name], { cursor: page.nextCursor }),
        link(["sets", name]),
      ),
    );
  }

  const { load, close } = refreshed(ask, draw, 2000);
  return {
    update(next) {
      place = next.query;
      load();
    },
    close,
  };
}

function versionRow(version, set, load) {
  const isCurrent = version.versionId === set.current?.versionId;
  const isKept = set.versions.some(({ versionId }) => versionId === version.versionId);
  return {
    key: version.versionId,
    cells: [
      h(
        "div",
        { class: "name" },
        h(
          "a",
          { class: "title", "data-row": true, href: link(["sets", set.name, version.versionId]) },
          h("bdi", {}, version.version),
        ),
        h(
          "span",
          { class: "sub" },
          h("span", { class: "narrow" }, badge(versionStatus(version))),
          isCurrent && h("span", { class: "tag" }, "current"),
          version.commit && version.commit !== version.version && h("code", { class: "muted clip" }, version.commit),
        ),
      ),
      badge(versionStatus(version)),
      progressOf(version),
      version.files.failed ? h("span", { class: "bad-text" }, count(version.files.failed)) : "0",
      time(version.createdAt),
      version.state === "failed"
        ? button("Retry", () => retryVersion(version, load), { class: "small" })
        : canCancel(version)
        ? button("Cancel…", () => cancelVersion(version, load), { class: "small", "aria-haspopup": "dialog" })
        : isKept && !isCurrent
        ? button("Make current", () => makeCurrent(version, load), { class: "small" })
        : null,
    ],
  };
}

async function makeCurrent({ name, version, versionId }, load) {
  await post(path("sets", name, "current"), { version: versionId });
  toast(`Version ${version} is current.`);
  await load();
}

function openDelete({ name, destination }) {
  confirmThen(
    `Delete the set ${name}?`,
    [
      "The name is gone at once, versions in flight are cancelled, and published files are removed soon afterwards.",
      destination &&
      h(
        "label",
        { class: "check" },
        h("input", { type: "checkbox", name: "keepFiles", value: "1" }),
        "Keep the files of the current version at the destination",
      ),
    ],
    "Delete",
    async (form) => {
      await call("DELETE", path("sets", name) + query({ keepFiles: form.get("keepFiles") }));
      toast(`${name} is deleted.`);
      go(["sets"]);
    },
    "Keep it",
  );
}
