// @ts-check
// Light, dark, or as the system has it. The choice is this browser's.

/** @typedef {"auto" | "light" | "dark"} Theme */

/** @returns {Theme} */
export function theme() {
  const t = localStorage.getItem("theme");
  return t === "light" || t === "dark" ? t : "auto";
}

/** @type {Set<() => void>} */
const readers = new Set();

/** Calls f whenever colours change. @param {() => void} f */
export function onTheme(f) {
  readers.add(f);
}

function apply() {
  const t = theme();
  if (t === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", t);
  for (const f of readers) f();
}

/** Goes on to the next theme: auto, light, dark. */
export function nextTheme() {
  const order = /** @type {Theme[]} */ (["auto", "light", "dark"]);
  const next = order[(order.indexOf(theme()) + 1) % order.length];
  if (next === "auto") localStorage.removeItem("theme");
  else localStorage.setItem("theme", next);
  apply();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
apply();
