// Creating sessions and downloads.

import { call, path, post } from "./api.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import { choice, dialog, field, toast } from "./parts.js";
import { go, link } from "./route.js";

/** Asks for a name and creates a session, or opens the one with this name. */
export function openNewSession() {
  dialog("New session", () => [
    field(
      "Identifier",
      h("input", {
        name: "identifier",
        required: true,
        autofocus: true,
        autocomplete: "off",
        spellcheck: "false",
        maxlength: 128,
        pattern: "[A-Za-z0-9._~:@+\\-]+",
        placeholder: "nightly-mirror",
      }),
      "Letters, digits and . _ - ~ : @ +. An existing session is opened.",
    ),
    field("Description", h("input", { name: "description", autocomplete: "off" })),
    h(
      "label",
      { class: "check" },
      h("input", { type: "checkbox", name: "discretionary" }),
      "Discretionary: waits for good conditions",
    ),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "quiet" }), "Never launch the app for it"),
  ], {
    submit: "Make it",
    async action(form) {
      const configuration = {};
      if (form.has("discretionary")) configuration.isDiscretionary = true;
      if (form.has("quiet")) configuration.sessionSendsLaunchEvents = false;
      const body = {
        ...(Object.keys(configuration).length ? { configuration } : {}),
        ...(form.get("description") ? { sessionDescription: form.get("description") } : {}),
      };
      await call("PUT", path("sessions", form.get("identifier")), { body });
      go(["sessions", form.get("identifier")]);
    },
  });
}

/** Asks for URLs and creates downloads in a session. */
export function openNewTasks(session) {
  dialog("New download", () => [
    field(
      "URLs",
      h("textarea", {
        name: "urls",
        rows: 4,
        required: true,
        autofocus: true,
        spellcheck: "false",
        placeholder: "https://example.com/a.bin",
      }),
      "One per line; each becomes a task.",
    ),
    h(
      "div",
      { class: "field-row" },
      field("Group", h("input", { name: "group", autocomplete: "off" })),
      field(
        "Segments",
        choice(
          "segments",
          [["1", "One"], ["auto", "As it fits"], ["2", "2"], ["4", "4"], ["8", "8"], ["16", "16"]],
          "1",
        ),
      ),
      field("Priority", choice("priority", [["0.25", "Low"], ["0.5", "Usual"], ["0.75", "High"]], "0.5")),
    ),
    field(
      "SHA-256",
      h("input", { name: "digest", autocomplete: "off", spellcheck: "false", pattern: "[0-9A-Fa-f]{64}" }),
      "The required digest of the content; for a single URL.",
    ),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "suspended" }), "Create it suspended"),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "confirm" }), "Ask before it starts"),
    h("details", {}, h("summary", {}, "More"), more()),
  ], {
    submit: "Hand over",
    async action(form) {
      const urls = form.get("urls").split(/\s+/).filter(Boolean);
      if (urls.length > 1 && form.get("into")) throw new Error("A destination is for a single URL.");
      const tasks = urls.map((url) => task(url, form, urls.length === 1));
      const target = `${path("sessions", session)}/tasks`;
      if (tasks.length === 1) {
        const made = await post(target, tasks[0]);
        toast(
          h(
            "a",
            { href: link(["sessions", session, "tasks", made.taskIdentifier]) },
            `Task ${made.taskIdentifier} is made.`,
          ),
        );
      } else {
        const made = await post(`${target}/batch?return=minimal`, { tasks });
        toast(`${counted(made.created, "task")} made.`);
      }
    },
  });
}

/** Fields for rare needs. */
function more() {
  const name = h("input", { name: "place", autocomplete: "off", spellcheck: "false", required: true, disabled: true });
  const key = h("input", { name: "path", autocomplete: "off", spellcheck: "false", required: true, disabled: true });
  const into = choice(
    "into",
    [["", "Kept by the service"], ["root", "A folder"], ["bucket", "A bucket"]],
    "",
    {
      change: (event) => {
        name.disabled = key.disabled = event.target.value === "";
      },
    },
  );
  return [
    field(
      "Name",
      h("input", { name: "description", autocomplete: "off", maxlength: 4096 }),
      "The description, which is its title here.",
    ),
    field(
      "Headers",
      h("textarea", {
        name: "headers",
        rows: 3,
        autocomplete: "off",
        spellcheck: "false",
        placeholder: "Authorization: Bearer …",
      }),
      "Name: value, one per line. They are sealed at rest and never shown again.",
    ),
    field("Not before", h("input", { type: "datetime-local", name: "begin" })),
    h(
      "div",
      { class: "field-row" },
      field("Destination", into),
      field("Root or bucket", name),
      field("Path or key", key),
    ),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "replace" }), "Replace what is there"),
  ];
}

/** The fields of lines such as `Name: value`. Fields of one name become a list. */
export function headersIn(text) {
  const headers = new Map();
  for (const line of text.split("\n").map((line) => line.trim()).filter(Boolean)) {
    const [, name, value] = /^([^:\s]+)\s*:\s*(.*)$/.exec(line) ?? [];
    if (!name) throw new Error(`A header is Name: value, unlike this line: ${line}`);
    const same = [...headers.keys()].find((one) => one.toLowerCase() === name.toLowerCase());
    headers.set(same ?? name, same ? `${headers.get(same)}, ${value}` : value);
  }
  return headers;
}

function task(url, form, isAlone) {
  const segments = form.get("segments");
  const headers = headersIn(form.get("headers"));
  const into = form.get("into");
  return {
    kind: "download",
    request: {
      url,
      ...(headers.size ? { headers: Object.fromEntries(headers), sensitiveHeaders: [...headers.keys()] } : {}),
    },
    ...(form.get("description") ? { taskDescription: form.get("description") } : {}),
    ...(form.get("begin") ? { earliestBeginDate: new Date(form.get("begin")).toISOString() } : {}),
    ...(into
      ? {
        destination: {
          [into]: form.get("place").trim(),
          [into === "root" ? "path" : "key"]: form.get("path").trim(),
          replace: form.has("replace"),
        },
      }
      : {}),
    priority: Number(form.get("priority")),
    ...(segments === "1" ? {} : { segments: segments === "auto" ? "auto" : Number(segments) }),
    ...(form.get("group") ? { group: form.get("group") } : {}),
    ...(isAlone && form.get("digest")
      ? { expectedDigest: { algorithm: "sha-256", value: form.get("digest").toLowerCase() } }
      : {}),
    ...(form.has("suspended") ? { state: "suspended" } : {}),
    ...(form.has("confirm") ? { confirmBeforeStart: true } : {}),
  };
}
