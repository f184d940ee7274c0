// The keys that were typed. They live in this module's memory and are gone with the page; those that are to be kept for
// the tab are in its `sessionStorage` as well, until they are forgotten or the tab is closed.

const audiences = ["app", "operator"];
const keys = new Map();
const listeners = new Set();
const placeOf = (audience) => `key of the ${audience}`;

/**
 * The key for an audience.
 *
 * @param {"app"|"operator"} audience
 * @returns {string|undefined}
 */
export function keyOf(audience) {
  return keys.get(audience)?.key;
}

/** What is known of the holder of a key: `{label, scopes}`; undefined without one. */
export function holderOf(audience) {
  return keys.get(audience)?.holder;
}

/** Whether any key is there. */
export function hasKeys() {
  return keys.size > 0;
}

/** Keeps a key, for the tab as well where `isForTab`. */
export function keepKey(audience, key, holder, isForTab = false) {
  keys.set(audience, { key, holder });
  stored((storage) => {
    if (isForTab) storage.setItem(placeOf(audience), JSON.stringify({ key, holder }));
    else storage.removeItem(placeOf(audience));
  });
  tell();
}

/** Forgets a key, wherever it is kept. */
export function forgetKey(audience) {
  keys.delete(audience);
  stored((storage) => storage.removeItem(placeOf(audience)));
  tell();
}

/** Calls back when keys come or go. */
export function onKeys(listener) {
  listeners.add(listener);
}

/** Has those keys alone that are kept for the tab. */
function restore() {
  keys.clear();
  for (const audience of audiences) {
    stored((storage) => {
      const { key, holder } = JSON.parse(storage.getItem(placeOf(audience))) ?? {};
      if (key && holder) keys.set(audience, { key, holder });
    });
  }
}

/** Does something with the tab's storage, which a browser may refuse. Without it a key is in memory alone. */
function stored(action) {
  try {
    action(sessionStorage);
  } catch {
    // Refused, or it holds something else.
  }
}

function tell() {
  for (const listener of listeners) listener();
}

restore();
// A page that comes back from the browser's cache must not bring along what was forgotten meanwhile.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  restore();
  tell();
});
