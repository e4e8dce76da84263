// @ts-check
// Short notes about what was done, read out by screen readers.

import { h, icon } from "./dom.js";

/** @param {string} text @param {"good" | "bad"} [tone] */
export function toast(text, tone = "good") {
  const box = /** @type {HTMLElement} */ (document.getElementById("toasts"));
  const note = h(tone === "bad" ? "div.toast.bad" : "div.toast", { role: tone === "bad" ? "alert" : null }, icon(tone === "bad" ? "warn" : "ok"), h("span", {}, text));
  // A dialog hides what is outside of it.
  const open = [...document.querySelectorAll("dialog[open]")].pop();
  if (open) open.append(box);
  else document.body.append(box);
  box.append(note);
  while (box.children.length > 3) box.firstElementChild?.remove();
  setTimeout(() => {
    note.remove();
    if (!box.children.length) document.body.append(box);
  }, tone === "bad" ? 9000 : 4500);
}
