// The keys that were typed. They live in this module's memory and nowhere else, and are gone with the page.

const keys = new Map();
const listeners = new Set();

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

/** Keeps a key. */
export function keepKey(audience, key, holder) {
  keys.set(audience, { key, holder });
  tell();
}

/** Forgets a key, or all of them. */
export function forgetKey(audience) {
  if (audience) keys.delete(audience);
  else keys.clear();
  tell();
}

/** Calls back when keys come or go. */
export function onKeys(listener) {
  listeners.add(listener);
}

function tell() {
  for (const listener of listeners) listener();
}
