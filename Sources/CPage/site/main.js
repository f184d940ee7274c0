// The page: the signed-in key, the place, and its view.

import { appView } from "./app.js";
import { call } from "./api.js";
import { clear, h, render } from "./dom.js";
import { findView } from "./find.js";
import { hasKeys, holderOf, keyOf, onKeys } from "./keys.js";
import { launchesView, launchView } from "./launches.js";
import { attempt, button, empty } from "./parts.js";
import { questionsView } from "./questions.js";
import { here, link } from "./route.js";
import { serviceView } from "./service.js";
import { appsView } from "./apps.js";
import { sessionsView } from "./sessions.js";
import { sessionView } from "./session.js";
import { setsView, setView } from "./sets.js";
import { setVersionView } from "./setversion.js";
import { listenForShortcuts, showShortcuts } from "./shortcuts.js";
import { openKeys, signInView } from "./signin.js";
import { poll } from "./stream.js";
import { taskView } from "./task.js";

const main = document.getElementById("main");
let current = null;
let openQuestions = 0;

/** The view of a place: a name that is stable while only the query changes, its audience, and its constructor. */
function viewAt([first, second, third, fourth]) {
  switch (first) {
    case undefined:
      return keyOf("app") || !keyOf("operator")
        ? ["sessions", "app", sessionsView, "Sessions"]
        : ["service", "operator", serviceView, "Service"];
    case "sessions":
      if (second === undefined) return ["sessions", "app", sessionsView, "Sessions"];
      if (third === "tasks" && fourth) return [`task ${second} ${fourth}`, "app", taskView, `Task ${fourth}`];
      return [`session ${second} ${third ?? "tasks"}`, "app", sessionView, second];
    case "tasks":
      return ["tasks", "app", findView, "Tasks"];
    case "sets":
      if (second === undefined) return ["sets", "app", setsView, "Sets"];
      if (third) return [`set ${second} ${third}`, "app", setVersionView, second];
      return [`set ${second}`, "app", setView, second];
    case "launches":
      return second ? [`launch ${second}`, "app", launchView, "Launch"] : ["launches", "app", launchesView, "Launches"];
    case "questions":
      return ["questions", "app", questionsView, "Questions"];
    case "app":
      return ["app", "app", appView, "App"];
    case "service":
      return ["service", "operator", serviceView, "Service"];
    case "apps":
      return ["apps", "operator", appsView, "Apps"];
    default:
      return ["nowhere", "public", nowhereView, "Not found"];
  }
}

function show() {
  const route = here();
  if (route.segments[0] === "main") return;
  const [name, audience, make, title] = viewAt(route.segments);
  const needsKey = audience !== "public" && !keyOf(audience);
  const wanted = needsKey ? `sign in ${audience}` : name;
  document.title = `${needsKey ? "Key" : title} · urlsessiond`;
  showFrame(name, needsKey);
  if (current?.name === wanted) return current.view.update?.(route);
  const isFirst = current === null;
  current?.view.close?.();
  clear(main);
  document.getElementById("announcer").textContent = "";
  // A separate element: a closed view may still draw its last response, invisibly.
  const host = h("div", { class: "view" });
  main.append(host);
  current = { name: wanted, view: needsKey ? signInView(host, audience) : make(host, route) };
  if (!isFirst) main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function nowhereView(host) {
  render(
    host,
    empty(
      "No such page",
      "The address is not a part of this page.",
      h("a", { class: "button", href: "#/" }, "To the sessions"),
    ),
  );
  return {};
}

function showFrame(name, needsKey) {
  const items = [
    keyOf("app") && ["Sessions", ["sessions"], /^(sessions|session |task )/],
    keyOf("app") && ["Tasks", ["tasks"], /^tasks$/],
    keyOf("app") && ["Sets", ["sets"], /^sets?\b/],
    keyOf("app") && ["Launches", ["launches"], /^launch/],
    keyOf("app") && ["Questions", ["questions"], /^questions/, openQuestions || undefined],
    keyOf("app") && ["App", ["app"], /^app$/],
    keyOf("operator") && ["Service", ["service"], /^service/],
    keyOf("operator") && ["Apps", ["apps"], /^apps/],
  ].filter(Boolean);
  const nav = document.getElementById("nav");
  nav.hidden = items.length === 0;
  render(
    nav,
    items.map(([text, segments, pattern, count]) =>
      h(
        "a",
        { href: link(segments), "aria-current": !needsKey && pattern.test(name) ? "page" : null },
        text,
        count && h("span", { class: "count attention", "aria-label": `${count} open` }, count),
      )
    ),
  );
  render(
    document.getElementById("holder"),
    h("a", { class: "quiet button", href: "/docs" }, "API"),
    hasKeys() && button("?", showShortcuts, { class: "quiet", "aria-label": "Keyboard shortcuts" }),
    hasKeys() &&
      button(["app", "operator"].map((audience) => holderOf(audience)?.label).filter(Boolean).join(" + "), openKeys, {
        class: "quiet holder",
        "aria-label": "Keys",
        title: "Keys",
      }),
  );
}

async function countQuestions() {
  if (!keyOf("app")) return;
  try {
    const page = await call("GET", "/v1/questions?state=open&limit=100");
    if (page.items.length !== openQuestions) {
      openQuestions = page.items.length;
      if (current) showFrame(current.name, current.name.startsWith("sign in"));
    }
  } catch {
    openQuestions = 0;
  }
}

addEventListener("hashchange", show);
onKeys(() => {
  openQuestions = 0;
  show();
  attempt(countQuestions);
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
listenForShortcuts();
poll(countQuestions, 10_000, new AbortController().signal);
show();
