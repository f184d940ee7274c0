// The entered keys. They are in this module's memory until the page is closed; keys with "Keep the key for
// this tab" are also in its `sessionStorage`, until they are removed or the tab is closed.

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

/** The holder of a key: `{label, scopes}`; undefined without a key. */
export function holderOf(audience) {
  return keys.get(audience)?.holder;
}

/** Whether there is any key. */
export function hasKeys() {
  return keys.size > 0;
}

/** Stores a key, also for the tab if `isForTab`. */
export function keepKey(audience, key, holder, isForTab = false) {
  keys.set(audience, { key, holder });
  stored((storage) => {
    if (isForTab) storage.setItem(placeOf(audience), JSON.stringify({ key, holder }));
    else storage.removeItem(placeOf(audience));
  });
  tell();
}

/** Removes a key from memory and storage. */
export function forgetKey(audience) {
  keys.delete(audience);
  stored((storage) => storage.removeItem(placeOf(audience)));
  tell();
}

/** Calls back when keys are added or removed. */
export function onKeys(listener) {
  listeners.add(listener);
}

/** Keeps only the keys that are stored for the tab. */
function restore() {
  keys.clear();
  for (const audience of audiences) {
    stored((storage) => {
      const { key, holder } = JSON.parse(storage.getItem(placeOf(audience))) ?? {};
      if (key && holder) keys.set(audience, { key, holder });
    });
  }
}

/** Accesses the tab's storage, which a browser may refuse. Without it a key is in memory only. */
function stored(action) {
  try {
    action(sessionStorage);
  } catch {
    // The storage is refused, or contains other data.
  }
}

function tell() {
  for (const listener of listeners) listener();
}

restore();
// A page restored from the browser's cache must not restore keys that were removed meanwhile.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  restore();
  tell();
});
