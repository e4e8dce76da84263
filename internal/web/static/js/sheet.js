// @ts-check
// A sheet at the side of the window, for one thing looked at closely. There is at
// most one; Escape, the cross and a click beside it close it.

import { h, icon } from "./dom.js";

/** @type {{el: HTMLDialogElement, closed: () => void} | null} */
let open = null;

/**
 * Opens a sheet in the place of the one that is open.
 * @param {{label: string, head: Node | Node[], body: Node | Node[], closed?: () => void}} what
 */
export function sheet({ label, head, body, closed = () => {} }) {
  closeSheet();
  const close = h("button.button.bare.square", { type: "button", "aria-label": "Close", title: "Close (Esc)", on: { click: () => el.close() } }, icon("cross"));
  const content = h("div.sheet-body", { tabindex: "-1" }, body);
  const el = h("dialog.sheet", { "aria-label": label }, h("div.sheet-head", {}, h("div.sheet-title", {}, head), close), content);
  el.addEventListener("click", (/** @type {MouseEvent} */ e) => {
    if (e.target === el) el.close();
  });
  const me = { el, closed };
  el.addEventListener("close", () => {
    el.remove();
    if (open === me) open = null;
    me.closed();
  });
  open = me;
  document.body.append(el);
  el.showModal();
  content.focus({ preventScroll: true });
  return el;
}

export function closeSheet() {
  const was = open;
  open = null;
  if (was) {
    was.el.close();
    was.el.remove();
  }
}
