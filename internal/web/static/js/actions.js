// @ts-check
// What a person changes: freezes, the target switch. Every change is a command of
// the console's, so that it is checked and logged as any other.

import { api } from "./api.js";
import { h } from "./dom.js";
import { live } from "./live.js";
import { toast } from "./toast.js";

/** Runs a command, says what became of it and looks again.
 * @param {string[]} words @param {string} [done] what to say, else the command's answer */
export async function run(words, done) {
  try {
    const answer = await api.command(...words);
    toast(done ?? answer.output);
    await live.refresh();
    return true;
  } catch (err) {
    toast(/** @type {Error} */ (err).message, "bad");
    return false;
  }
}

/** Lifts a freeze of a View. @param {any} f */
export const lift = (f) => run(["freeze", "rm", f.virtual_model, String(f.index)], `${f.candidate} is back.`);

/** @param {boolean} on */
export const target = (on) => run(["target", on ? "on" : "off"]);

/** The lengths that are offered. */
const LENGTHS = [
  [600, "10 minutes"],
  [3600, "1 hour"],
  [28800, "8 hours"],
  [86400, "1 day"],
];

/**
 * Asks for how long a candidate is to be frozen, and does it.
 * @param {any} model @param {any} candidate
 */
export function freeze(model, candidate) {
  const other = h("input.field", { type: "number", min: "1", max: "525600", step: "1", inputmode: "numeric", "aria-label": "Minutes", placeholder: "minutes" });
  const choices = h("div.choices", { role: "radiogroup", "aria-label": "How long" },
    LENGTHS.map(([seconds, name], i) => h("label.choice", {}, h("input", { type: "radio", name: "length", value: seconds, checked: i === 0 }), h("span", {}, name))),
    h("label.choice.free", {}, h("input", { type: "radio", name: "length", value: "other" }), other));
  other.addEventListener("input", () => { /** @type {any} */ (choices.querySelector("input[value=other]")).checked = true; });
  const reason = h("input.field", { type: "text", maxlength: "200", placeholder: "frozen by hand", "aria-label": "Reason" });
  const box = h("dialog.box", { "aria-labelledby": "freeze-title" });
  const send = (/** @type {Event} */ e) => {
    e.preventDefault();
    const picked = /** @type {any} */ (choices.querySelector("input:checked")).value;
    const seconds = picked === "other" ? Math.round(Number(other.value) * 60) : Number(picked);
    if (!(seconds > 0)) {
      other.focus();
      return;
    }
    box.close();
    const words = ["freeze", "add", model.name, String(candidate.index), String(seconds)];
    if (reason.value.trim()) words.push(reason.value.trim());
    run(words, `${candidate.name} is frozen.`);
  };
  box.append(h("form", { on: { submit: send } },
    h("div", {}, h("h2", { id: "freeze-title" }, `Freeze ${candidate.name}`), h("p.quiet", {}, "It is passed over by everybody until then, wherever it stands. Running requests finish.")),
    choices,
    h("label.stack", {}, h("span", {}, "Reason"), reason),
    h("div.box-actions", {}, h("button.button", { type: "button", on: { click: () => box.close() } }, "Cancel"), h("button.button.primary", { type: "submit" }, "Freeze"))));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}
