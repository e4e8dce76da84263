// @ts-check
// A text field for the configuration: a textarea as every other, with numbers,
// colours and the marks of mistakes painted behind it.

import { attr, h } from "./dom.js";
import { tokens } from "./highlight.js";

/** Longer lines are not coloured. */
const LONG = 2000;

/**
 * @param {{label: string, input: () => void}} what
 */
export function editor({ label, input }) {
  const area = h("textarea.code-area", {
    spellcheck: "false", autocapitalize: "off", autocomplete: "off", autocorrect: "off", wrap: "off", "aria-label": label, "aria-describedby": "editor-hint", translate: "no",
    on: { input: () => { paint(); input(); }, keydown: (/** @type {KeyboardEvent} */ e) => key(e) },
  });
  const paper = h("div.code-paint", { "aria-hidden": "true", translate: "no" });
  const gutter = h("div.code-gutter", { "aria-hidden": "true" });
  const el = h("div.editor", {}, gutter, h("div.code", {}, paper, area));
  let format = "yaml";
  /** @type {string[]} */
  let masks = [];
  /** @type {string[]} */
  let lines = [];
  /** @type {Map<number, any>} problems by line */
  let marks = new Map();

  /** @param {string} text */
  function line(text) {
    return h("div.code-line", {}, text.length > LONG ? text : tokens(text, format, masks).map((t) => (t.kind ? h("span", { class: "tok-" + t.kind }, t.text) : t.text)));
  }

  /** Paints what has changed: the lines between those at the beginning and at the end
   * that are as they were. @param {boolean} [all] */
  function paint(all) {
    const next = area.value.split("\n");
    let head = 0;
    let tail = 0;
    if (!all) {
      while (head < lines.length && head < next.length && lines[head] === next[head]) head++;
      while (tail < lines.length - head && tail < next.length - head && lines[lines.length - 1 - tail] === next[next.length - 1 - tail]) tail++;
    }
    const old = [...paper.children].slice(head, lines.length - tail);
    const before = paper.children[lines.length - tail] ?? null;
    for (const node of old) node.remove();
    const fresh = document.createDocumentFragment();
    for (const text of next.slice(head, next.length - tail)) fresh.append(line(text));
    paper.insertBefore(fresh, before);
    while (gutter.childElementCount > next.length) gutter.lastElementChild.remove();
    while (gutter.childElementCount < next.length) gutter.append(h("span", {}, gutter.childElementCount + 1));
    const moved = next.length - lines.length;
    lines = next;
    // Marks move with their lines until the text has been looked at again.
    if (moved && marks.size) marks = new Map([...marks].map(([n, p]) => [n > head ? Math.max(head + 1, n + moved) : n, p]));
    dress();
  }

  function dress() {
    for (const old of el.querySelectorAll("[data-mark]")) {
      old.removeAttribute("data-mark");
      old.removeAttribute("data-says");
    }
    for (const [n, p] of marks) {
      const at = paper.children[n - 1];
      if (!at) continue;
      attr(at, "data-mark", p.severity);
      attr(at, "data-says", p.what + (p.cure ? ": " + p.cure : ""));
      attr(gutter.children[n - 1], "data-mark", p.severity);
    }
  }

  /** A new line begins where the one above does. @param {KeyboardEvent} e */
  function key(e) {
    if (e.key !== "Enter" || e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    const above = area.value.slice(area.value.lastIndexOf("\n", area.selectionStart - 1) + 1, area.selectionStart);
    const indent = /^ */.exec(above)?.[0] ?? "";
    const deeper = /:\s*$/.test(above) && format === "yaml" ? "  " : "";
    if (!indent && !deeper) return;
    e.preventDefault();
    // The old command is the one that keeps what undo knows.
    if (!document.execCommand("insertText", false, "\n" + indent + deeper)) area.setRangeText("\n" + indent + deeper, area.selectionStart, area.selectionEnd, "end");
  }

  return {
    el, area,
    get value() { return area.value; },
    /** @param {string} text @param {string} as @param {string[]} known masks */
    load(text, as, known) {
      const at = area.selectionStart;
      const keep = area === document.activeElement;
      format = as;
      masks = known;
      area.value = text;
      marks = new Map();
      paint(true);
      if (keep) area.setSelectionRange(Math.min(at, text.length), Math.min(at, text.length));
    },
    /** @param {any[]} problems */
    mark(problems) {
      marks = new Map();
      for (const p of problems) {
        const known = marks.get(p.line);
        if (p.line > 0 && (!known || (known.severity === "warning" && p.severity === "error"))) marks.set(p.line, p);
      }
      dress();
    },
    /** Puts the caret at a place. @param {number} n @param {number} column */
    go(n, column) {
      const chars = [...(lines[n - 1] ?? "")].slice(0, Math.max(0, column - 1)).join("").length;
      const at = lines.slice(0, n - 1).reduce((t, l) => t + l.length + 1, 0) + chars;
      area.focus({ preventScroll: true });
      area.setSelectionRange(at, at);
      const box = paper.children[n - 1];
      if (box) {
        const high = /** @type {HTMLElement} */ (box).offsetHeight;
        el.scrollTo({ top: Math.max(0, (n - 1) * high - el.clientHeight / 2), left: 0 });
      }
    },
  };
}

