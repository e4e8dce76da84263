// @ts-check
// What the keyboard does. Single keys work only while nobody types.

import { h } from "./dom.js";
import { closeSheet } from "./sheet.js";

/** @type {[string[], string][]} */
const KEYS = [
  [["1"], "Overview"],
  [["2"], "Requests"],
  [["3"], "Configuration"],
  [["/"], "Search the requests"],
  [["j"], "Next request"],
  [["k"], "Previous request"],
  [["Enter"], "Open the request"],
  [["p"], "Pause or resume the list of requests"],
  [["Ctrl", "S"], "Apply the configuration"],
  [["F8"], "Next mistake in the configuration"],
  [["Esc"], "Close what is open"],
  [["?"], "These shortcuts"],
];

/** @param {{go: (hash: string) => void, view: () => any}} app */
export function shortcuts({ go, view }) {
  addEventListener("keydown", (e) => {
    if (view().key?.(e)) {
      e.preventDefault();
      return;
    }
    const typing = e.target instanceof HTMLElement && e.target.closest("input:not([type=radio]), textarea, select");
    if (typing || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog.box[open]")) return;
    const hash = { 1: "#/", 2: "#/requests", 3: "#/config", "/": "#/requests" }[e.key];
    if (hash) {
      e.preventDefault();
      closeSheet();
      go(hash);
      if (e.key === "/") setTimeout(() => view().search?.());
    } else if (e.key === "?") showShortcuts();
  });
}

export function showShortcuts() {
  const box = h("dialog.box", { "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keyboard"),
    h("dl.keys", {}, KEYS.flatMap(([keys, does]) => [h("dt", {}, keys.flatMap((k, i) => [i ? " " : "", h("kbd", {}, k)])), h("dd", {}, does)])),
    h("form.box-actions", { method: "dialog" }, h("button.button", {}, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

