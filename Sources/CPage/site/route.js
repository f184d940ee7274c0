// The place on the page, kept in the address after `#` for reload, back and bookmarks. The server does not receive
// it.

/**
 * The place that an address names.
 *
 * @param {string} hash
 * @returns {{segments: string[], query: Record<string, string>}}
 */
export function parse(hash) {
  const [way, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const segments = way.split("/").filter(Boolean).map((segment) => {
    try {
      return decodeURIComponent(segment);
    } catch {
      return segment;
    }
  });
  return { segments, query: Object.fromEntries(new URLSearchParams(search)) };
}

/** The address of a place. */
export function link(segments, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = given.length ? "?" + new URLSearchParams(given) : "";
  return "#/" + segments.map((segment) => encodeURIComponent(segment)).join("/") + search;
}

/** The current place. */
export function here() {
  return parse(location.hash);
}

/** Opens a place. */
export function go(segments, query) {
  location.hash = link(segments, query);
}

/** Changes the query of the current place; empty members are omitted. */
export function refine(changes, { replace = false } = {}) {
  const { segments, query } = here();
  const target = link(segments, { ...query, ...changes });
  if (replace) {
    history.replaceState(null, "", target);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = target;
  }
}
