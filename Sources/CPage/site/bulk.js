// Actions on many tasks: on the selected ones, or on all that match the filter.

import { path, post, Problem } from "./api.js";
import { h } from "./dom.js";
import { count, counted } from "./format.js";
import { button, confirmThen, toast } from "./parts.js";

const verbs = [["suspend", "Suspend"], ["resume", "Resume"], ["cancel", "Cancel"], ["retry", "Retry"]];
const atOnce = 6;

/**
 * The bar above the list.
 *
 * @param {string} session
 * @param {{place: object, selected: Set<number>, items: object[], changed: () => void, done: () => void}} list
 */
export function bulkBar(session, list) {
  const { place, selected, items, changed } = list;
  const isAll = selected.size === items.length && items.length > 0;
  const box = h("input", {
    type: "checkbox",
    checked: isAll,
    "aria-label": "Select all tasks of this page",
    on: {
      change: () => {
        if (isAll) selected.clear();
        else for (const task of items) selected.add(task.taskIdentifier);
        changed();
      },
    },
  });
  const isWhole = selected.size === 0;
  // The session-wide forms support neither client ids nor searches.
  const canWhole = !place.clientTaskId && !place.search;
  const text = isWhole ? (canWhole ? "All that match" : "None selected") : `${count(selected.size)} selected`;
  return h(
    "div",
    { class: "bulk", role: "group", "aria-label": "Change many tasks" },
    h("label", { class: "check" }, box, h("span", {}, text)),
    h(
      "div",
      { class: "row" },
      verbs.map(([verb, name]) =>
        button(name, () => (isWhole ? whole(session, verb, name, list) : some(session, verb, name, list)), {
          class: "small",
          disabled: isWhole && !canWhole,
        })
      ),
    ),
  );
}

function whole(session, verb, name, { place, done }) {
  const selection = Object.fromEntries(
    ["state", "outcome", "group"].filter((key) => place[key]).map((key) => [key, place[key]]),
  );
  const words = Object.values(selection).join(", ");
  confirmThen(
    `${name} ${words ? `all that are: ${words}` : "all tasks"}?`,
    `This applies to all matching tasks of the session, not only to this page${
      verb === "retry" ? "; each completed one gets a new task" : ""
    }.`,
    `${name} ${words ? "those that match" : "all tasks"}`,
    async () => {
      const answer = await post(`${path("sessions", session)}/tasks/${verb}`, selection);
      toast(
        `${counted(answer.changed, "task")} of ${count(answer.matched)} changed.${
          answer.errors?.length ? ` ${answer.errors.length} could not be changed.` : ""
        }`,
      );
      done();
    },
    "Keep them as they are",
  );
}

async function some(session, verb, name, { selected, changed, done }) {
  const numbers = [...selected];
  if (verb === "cancel") {
    confirmThen(
      `Cancel ${counted(numbers.length, "task")}?`,
      `The bytes received so far are dropped.`,
      `Cancel ${counted(numbers.length, "task")}`,
      run,
      numbers.length === 1 ? "Keep it" : "Keep them",
    );
    return;
  }
  await run();

  async function run() {
    let failures = 0;
    let last = null;
    const work = numbers.slice();
    await Promise.all(Array.from({ length: atOnce }, async () => {
      for (let number = work.shift(); number !== undefined; number = work.shift()) {
        try {
          await post(`${path("sessions", session, "tasks", number)}/${verb}`);
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          failures += 1;
          last = error;
        }
      }
    }));
    selected.clear();
    changed();
    done();
    if (last) {
      toast(new Problem(last.status, { detail: `${name}: ${failures} of ${numbers.length} refused. ${last.message}` }));
    } else toast(`${name}: ${counted(numbers.length, "task")}.`);
  }
}
