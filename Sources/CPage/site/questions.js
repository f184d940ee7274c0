// Questions of tasks to the app, and the forms for answers.

import { call, path, post, query } from "./api.js";
import { h, render } from "./dom.js";
import { addressOf, counted } from "./format.js";
import { headersIn } from "./forms.js";
import {
  badge,
  button,
  choice,
  confirmThen,
  dialog,
  empty,
  facts,
  field,
  notice,
  pager,
  time,
  toast,
} from "./parts.js";
import { link, refine } from "./route.js";
import { refreshed } from "./stream.js";
import { questionStatus } from "./words.js";

const methods = {
  HTTPBasic: "a user and a password (Basic)",
  HTTPDigest: "a user and a password (Digest)",
  HTTPBearer: "a token (Bearer)",
  ClientCertificate: "a client certificate",
  ServerTrust: "whether to trust the server’s key",
};

/** The list of questions, each with its form. */
export function questionsView(host, route) {
  let place = { state: "open", ...route.query };
  const ask = (signal) => {
    const { state, session, cursor } = place;
    return call(
      "GET",
      "/v1/questions" + query({ state: state === "all" ? "" : state, session, cursor, limit: 50 }),
      { signal },
    );
  };

  function draw(page, problem) {
    const states = choice(
      "state",
      [["open", "Open"], ["answered", "Answered"], ["expired", "Expired"], ["all", "All"]],
      place.state,
      {
        change: (event) => refine({ state: event.target.value, cursor: "" }),
      },
      "State",
    );
    render(
      host,
      h("div", { class: "view-head" }, h("h1", {}, "Questions"), states),
      problem && notice(problem),
      page && (page.items.length === 0
        ? empty(
          place.state === "open" ? "Nothing to answer" : "No questions",
          "A task asks if a server requires a credential, or before its start if the app requested that.",
        )
        : h("ul", { class: "cards" }, page.items.map((question) => card(question, load)))),
      page &&
        pager(
          !place.cursor,
          page.nextCursor && link(["questions"], { ...place, cursor: page.nextCursor }),
          link(["questions"], { ...place, cursor: "" }),
        ),
    );
  }

  const { load, close } = refreshed(ask, draw, 3000);
  return {
    update(next) {
      place = { state: "open", ...next.query };
      load();
    },
    close,
  };
}

function card(question, load) {
  const space = question.protectionSpace;
  const isOpen = question.state === "open";
  const task = h(
    "a",
    { href: link(["sessions", question.sessionIdentifier, "tasks", question.taskIdentifier]) },
    `task ${question.taskIdentifier} of ${question.sessionIdentifier}`,
  );
  return h(
    "li",
    { class: "panel card", key: question.questionId },
    h(
      "header",
      { class: "panel-head" },
      h(
        "h2",
        {},
        space
          ? `${space.host}:${space.port} asks for ${methods[space.authenticationMethod] ?? space.authenticationMethod}`
          : "May it begin?",
      ),
      badge(questionStatus(question)),
    ),
    facts([
      ["Asked by", [
        task,
        question.taskCount > 1 ? ` and ${counted(question.taskCount - 1, "more task")} that waits for the same answer` : "",
      ]],
      ["Realm", space?.realm],
      ["Proxy", space?.isProxy ? "yes" : null],
      ["Server’s key", space?.serverPublicKey && h("code", {}, space.serverPublicKey)],
      ["Refused before", question.previousFailureCount > 0 && `${question.previousFailureCount} times`],
      ["Request", question.request && h("code", {}, `${question.request.method} ${addressOf(question.request)}`)],
      ["Asked", time(question.createdAt)],
      ["Expires", isOpen && time(question.deadline)],
      ["Answer", question.disposition],
      ["Answered", question.answeredAt && time(question.answeredAt)],
    ]),
    isOpen && h("div", { class: "row pad" }, space ? challengeButtons(question, load) : delayedButtons(question, load)),
  );
}

async function answer(question, body, load) {
  await post(`${path("questions", question.questionId)}/answer`, body);
  toast("Answered.");
  await load();
}

function challengeButtons(question, load) {
  const isTrust = question.protectionSpace.authenticationMethod === "ServerTrust";
  return [
    button(isTrust ? "Trust this key…" : "Give a credential…", () => openCredential(question, load), {
      class: "primary",
      "aria-haspopup": "dialog",
    }),
    button("Go on without", () => answer(question, { disposition: "performDefaultHandling" }, load)),
    button("Try the next scheme", () => answer(question, { disposition: "rejectProtectionSpace" }, load)),
    button(
      "Cancel the tasks",
      () =>
        confirmThen(
          "Cancel the tasks that wait?",
          "All tasks that wait for this answer end as cancelled.",
          "Cancel the tasks",
          () => answer(question, { disposition: "cancelAuthenticationChallenge" }, load),
          "Keep them",
        ),
      { class: "danger-quiet" },
    ),
  ];
}

function delayedButtons(question, load) {
  return [
    button("Begin", () => answer(question, { disposition: "continueLoading" }, load), { class: "primary" }),
    button("Begin with another request…", () => openNewRequest(question, load), { "aria-haspopup": "dialog" }),
    button("Cancel the task", () => answer(question, { disposition: "cancel" }, load), { class: "danger-quiet" }),
  ];
}

function input(name, properties = {}) {
  return h("input", { name, autocomplete: "off", spellcheck: "false", required: true, ...properties });
}

function openCredential(question, load) {
  const { authenticationMethod: method, serverPublicKey, host } = question.protectionSpace;
  const persistence = () =>
    field(
      "Keep it",
      choice(
        "persistence",
        [["none", "Not at all"], ["forSession", "For this session"], ["permanent", "For good"]],
        "forSession",
      ),
      "A kept credential is sealed, and used by later tasks without a question.",
    );
  const fields = {
    HTTPBearer: () => [field("Token", input("token", { type: "password", autofocus: true }))],
    ClientCertificate: () => [
      field("Certificate (PEM)", h("textarea", { name: "certificate", rows: 5, required: true, autofocus: true })),
      field("Key (PEM)", h("textarea", { name: "key", rows: 5, required: true })),
    ],
    ServerTrust: () => [
      h(
        "p",
        {},
        "The server’s certificate could not be verified. If you know that this is its key, tasks of the session may connect to it:",
      ),
      h("p", {}, h("code", {}, serverPublicKey)),
    ],
  }[method] ??
    (() => [
      field("User", input("user", { autofocus: true, value: question.proposedCredential?.user ?? "" })),
      field("Password", input("password", { type: "password", required: false })),
    ]);
  dialog(method === "ServerTrust" ? `Trust ${host}?` : `A credential for ${host}`, () => [...fields(), persistence()], {
    submit: method === "ServerTrust" ? "Trust it" : "Use it",
    action(form) {
      const credential = method === "ServerTrust" ? { trustPublicKey: serverPublicKey } : Object.fromEntries(
        ["user", "password", "token", "certificate", "key"].filter((name) => form.has(name)).map((
          name,
        ) => [name, form.get(name)]),
      );
      return answer(question, {
        disposition: "useCredential",
        credential: { ...credential, persistence: form.get("persistence") },
      }, load);
    },
  });
}

function openNewRequest(question, load) {
  dialog("Begin with another request", () => [
    field("URL", input("url", { type: "url", value: question.request?.url ?? "", autofocus: true })),
    field(
      "Header fields",
      h("textarea", { name: "headers", rows: 4, placeholder: "Authorization: Bearer …" }),
      "One per line. They replace the original ones.",
    ),
  ], {
    submit: "Begin",
    action(form) {
      const headers = headersIn(form.get("headers"));
      return answer(question, {
        disposition: "useNewRequest",
        request: { url: form.get("url"), ...(headers.size ? { headers: Object.fromEntries(headers) } : {}) },
      }, load);
    },
  });
}
