// Elements as values: a view describes the desired elements, and `render` changes the existing ones accordingly.
// Text is inserted into text nodes only, so data never becomes markup.
//
// An element with a `stamp` creates its children only if the stamp has changed, so a list costs only its changes.

const svgNames = new Set(["svg", "g", "path", "rect", "line", "polyline", "text", "title"]);

/**
 * Creates an element.
 *
 * @param {string} name
 * @param {object} [properties] `key` tells siblings apart, `stamp` tells all that the element depends on, `on` holds
 *   listeners; everything else is an attribute. Attributes that are null or false are left out.
 * @param {...any} children Nodes, texts, numbers and lists of them; null and false are omitted. With a stamp, a
 *   function that returns them.
 * @returns {Element}
 */
export function h(name, properties, ...children) {
  const isSVG = svgNames.has(name) && !(name === "title" && !properties?.svg);
  const element = isSVG ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [attribute, value] of Object.entries(properties ?? {})) {
    if (attribute === "key" || attribute === "stamp") element[`$${attribute}`] = value;
    else if (attribute === "on") listen(element, value ?? {});
    else if (attribute === "svg") continue;
    else if (attribute === "value" && "value" in element && name !== "progress") {
      element.value = element.$value = value ?? "";
    } else if (attribute === "checked") element.checked = element.$checked = Boolean(value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(attribute, value === true ? "" : String(value));
    }
  }
  if (element.$stamp === undefined) element.append(...nodes(children));
  else element.$children = children[0];
  if (name === "select" && properties?.value !== undefined) element.value = properties.value ?? "";
  return element;
}

/**
 * Makes the children of an element what they should be, keeping the elements that are there, and with them focus,
 * selection and scroll position.
 *
 * @param {Element} parent
 * @param {...any} children As for `h`.
 */
export function render(parent, ...children) {
  reconcile(parent, nodes(children));
}

/** Removes all children of an element. */
export function clear(element) {
  element.replaceChildren();
}

function nodes(children) {
  return children.flat(Infinity).filter((child) =>
    child !== null && child !== undefined && child !== false && child !== ""
  )
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

function listen(element, handlers) {
  element.$on ??= {};
  for (const [type, handler] of Object.entries(handlers)) {
    if (!(type in element.$on)) element.addEventListener(type, dispatch);
    element.$on[type] = handler;
  }
}

function dispatch(event) {
  return event.currentTarget.$on[event.type]?.(event);
}

function reconcile(parent, wanted) {
  const keys = new Set(wanted.map((node) => node.$key).filter((key) => key !== undefined));
  const keyed = new Map();
  for (const child of [...parent.childNodes]) {
    if (child.$key === undefined) continue;
    if (keys.has(child.$key)) keyed.set(child.$key, child);
    else child.remove();
  }
  let place = parent.firstChild;
  for (const next of wanted) {
    const old = next.$key === undefined ? (place?.$key === undefined ? place : null) : keyed.get(next.$key);
    if (!old) {
      parent.insertBefore(complete(next), place);
    } else if (old.nodeName !== next.nodeName) {
      if (old === place) place = place.nextSibling;
      parent.replaceChild(complete(next), old);
    } else {
      if (old === place) place = place.nextSibling;
      else parent.insertBefore(old, place);
      patch(old, next);
    }
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

/** Creates the deferred children of a tree before it is shown. */
function complete(node) {
  makeChildren(node);
  node.childNodes.forEach(complete);
  return node;
}

function makeChildren(node) {
  if (!node.$children) return;
  node.append(...nodes([node.$children()]));
  node.$children = null;
}

function patch(old, next) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  if (old === next || (next.$stamp !== undefined && next.$stamp === old.$stamp)) return;
  old.$stamp = next.$stamp;
  makeChildren(next);
  for (const name of old.getAttributeNames()) {
    // The reader controls whether it is open.
    if (!next.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const name of next.getAttributeNames()) {
    const value = next.getAttribute(name);
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const type of Object.keys(old.$on ?? {})) old.$on[type] = next.$on?.[type];
  if (next.$on) listen(old, next.$on);
  if (next.$checked !== undefined) old.checked = next.$checked;
  reconcile(old, [...next.childNodes]);
  // Text that a person is typing is kept.
  if (next.$value !== undefined && next.$value !== old.$value && document.activeElement !== old) {
    old.value = old.$value = next.$value;
  }
}
