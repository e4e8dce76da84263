// @ts-check
// Making and changing elements. Texts only ever become text nodes: whatever an
// upstream, a model or a file is called, it is never read as markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Makes an element.
 * @param {string} tag  "div", or "div.some.classes"
 * @param {Record<string, any>} [props]  attributes; `on` holds listeners, `text` the text
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const el = document.createElement(name);
  if (classes.length) el.className = classes.join(" ");
  apply(el, props);
  el.append(...solid(children));
  return el;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * Makes an element of a picture.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {any}
 */
export function s(tag, props = {}, ...children) {
  const el = document.createElementNS(SVG, tag);
  apply(el, props);
  el.append(...solid(children));
  return el;
}

/** @param {any[]} children @returns {(Node | string)[]} */
function solid(children) {
  return children.flat().filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c)));
}

/** @param {Element} el @param {Record<string, any>} props */
function apply(el, props) {
  for (const [key, value] of Object.entries(props)) {
    if (key === "on") for (const [event, f] of Object.entries(value)) el.addEventListener(event, f);
    else if (key === "text") el.textContent = value;
    else attr(el, key, value);
  }
}

/** Sets the text of a node where it is another.
 * @param {Node} node @param {string | number} text */
export function put(node, text) {
  const t = String(text);
  if (node.textContent !== t) node.textContent = t;
}

/** Sets an attribute where it is another; null, undefined and false remove it.
 * @param {Element} el @param {string} name @param {any} value */
export function attr(el, name, value) {
  const says = name.startsWith("aria-"); // where "false" is not the same as nothing
  if (value === null || value === undefined || (value === false && !says)) {
    if (el.hasAttribute(name)) el.removeAttribute(name);
    return;
  }
  const v = value === true && !says ? "" : String(value);
  if (el.getAttribute(name) !== v) el.setAttribute(name, v);
}

/** @param {HTMLElement} el @param {boolean} visible */
export function show(el, visible) {
  if (el.hidden === visible) el.hidden = !visible;
}

/** Gives an element its class where it is another.
 * @param {Element} el @param {string} name */
export function dress(el, name) {
  if (el.getAttribute("class") !== name) el.setAttribute("class", name);
}

/**
 * Keeps the children of a container those of a list: what stays is kept and moved,
 * so that focus, selection and open menus survive an update.
 * @template T
 * @template {{el: Element, update: (item: T) => void}} P
 * @param {Element} box
 * @param {(item: T) => string} key
 * @param {(item: T) => P} make
 */
export function list(box, key, make) {
  /** @type {Map<string, P>} */
  const parts = new Map();
  return {
    parts,
    /** @param {T[]} items */
    update(items) {
      const wanted = new Set();
      /** @type {Element | null} */
      let at = box.firstElementChild;
      for (const item of items) {
        const k = key(item);
        if (wanted.has(k)) continue;
        wanted.add(k);
        let part = parts.get(k);
        if (!part) parts.set(k, (part = make(item)));
        part.update(item);
        if (part.el === at) at = at.nextElementSibling;
        else box.insertBefore(part.el, at);
      }
      for (const [k, part] of parts) {
        if (wanted.has(k)) continue;
        part.el.remove();
        parts.delete(k);
      }
    },
  };
}

/** The pictures, as paths on a field of 16 by 16. */
const PATHS = {
  ok: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  warn: "M8 2.2 14.6 13.6H1.4zM8 6.4v3.4M8 11.7v.1",
  ice: "M8 1.5v13M2.4 4.7l11.2 6.6M13.6 4.7 2.4 11.3M6.2 2.6 8 4.2l1.8-1.6M6.2 13.4 8 11.8l1.8 1.6",
  off: "M3 8h10",
  trial: "M8 4.5V8l2.3 1.6M14 8A6 6 0 1 1 8 2",
  swap: "M2 5.5h10.5L9.8 2.8M14 10.5H3.5l2.7 2.7",
  down: "M5 1.8h6L14.2 5v6L11 14.2H5L1.8 11V5zM8 4.8v3.8M8 11v.1",
  moon: "M13.6 9.6A6 6 0 0 1 6.4 2.4a6 6 0 1 0 7.2 7.2z",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.2M8 13.8V15M1 8h1.2M13.8 8H15M3 3l.9.9M12.1 12.1l.9.9M13 3l-.9.9M3.9 12.1 3 13",
  half: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
  keys: "M1.8 4h12.4v8H1.8zM4.3 6.6h.1M7 6.6h.1M9.7 6.6h.1M12 6.6h.1M4.5 9.5h7",
  out: "M6 2.5H2.5v11H6M6.5 8H14M11 5l3 3-3 3",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.4 10.4 14 14",
  pause: "M5.5 3v10M10.5 3v10",
  play: "M4.5 2.8 13 8l-8.5 5.2z",
  copy: "M5.5 5.5h8v8h-8zM3 10.5H2.5v-8h8V3",
  next: "M6 3l5 5-5 5",
  empty: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z",
  left: "M10 2.5h3.5v11H10M9.5 8H2M5 5 2 8l3 3",
  broken: "M2 8h3.5l1.5-4 2 8 1.5-4H14",
};

/** @param {keyof typeof PATHS} name @param {string} [className] */
export function icon(name, className = "icon") {
  return s("svg", { class: className, viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d: PATHS[name] }));
}

/** Changes the picture of an icon that is there.
 * @param {Element} el @param {keyof typeof PATHS} name */
export function picture(el, name) {
  const path = el.firstElementChild;
  if (path) attr(path, "d", PATHS[name]);
}
