// @ts-check
// The last day as a row of bars: high where much happened, red where it failed, pale
// blue where nobody was called because of a freeze.

import { attr, h, put, s } from "./dom.js";
import { count, time } from "./format.js";

const HEIGHT = 26;

/**
 * Adds up cells so that a row has so many bars.
 * @param {any} history @param {number} bars
 */
export function bars(history, bars) {
  const n = history.states.length;
  const per = Math.max(1, Math.round(n / bars));
  const out = [];
  for (let i = 0; i < n; i += per) {
    const bar = { start: Date.parse(history.start) + i * history.cell_seconds * 1000, seconds: per * history.cell_seconds, ok: 0, bad: 0, frozen: false };
    for (let k = i; k < Math.min(i + per, n); k++) {
      bar.ok += history.successes[k];
      bar.bad += history.failures[k];
      bar.frozen ||= history.states[k] === "frozen";
    }
    out.push(bar);
  }
  return out;
}

/** @param {string} what @param {number} [n] how many bars */
export function strip(what, n = 72) {
  const paths = { frozen: s("path", { class: "bar-frozen" }), idle: s("path", { class: "bar-idle" }), ok: s("path", { class: "bar-ok" }), bad: s("path", { class: "bar-bad" }) };
  const el = s("svg", { class: "history", viewBox: `0 0 ${n * 4} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" }, ...Object.values(paths));
  /** @type {ReturnType<typeof bars>} */
  let now = [];
  hover(el, (share) => {
    const bar = now[Math.min(now.length - 1, Math.floor(share * now.length))];
    return bar && describe(bar);
  });
  return {
    el,
    /** @param {any} history */
    update(history) {
      now = bars(history, n);
      const most = Math.max(1, ...now.map((b) => b.ok + b.bad));
      const d = { frozen: "", idle: "", ok: "", bad: "" };
      now.forEach((b, i) => {
        const x = i * 4;
        const all = b.ok + b.bad;
        if (all === 0) {
          if (b.frozen) d.frozen += `M${x} 0h4v${HEIGHT}h-4z`;
          else d.idle += `M${x} ${HEIGHT - 2}h3v2h-3z`;
          return;
        }
        const high = Math.max(4, Math.round(Math.sqrt(all / most) * HEIGHT));
        const bad = b.bad ? Math.max(b.ok ? 3 : high, Math.round((b.bad / all) * high)) : 0;
        if (bad < high) d.ok += `M${x} ${HEIGHT - high}h3v${high - bad}h-3z`;
        if (bad) d.bad += `M${x} ${HEIGHT - bad}h3v${bad}h-3z`;
      });
      for (const k of /** @type {const} */ (["frozen", "idle", "ok", "bad"])) attr(paths[k], "d", d[k]);
      const ok = now.reduce((t, b) => t + b.ok, 0);
      const bad = now.reduce((t, b) => t + b.bad, 0);
      attr(el, "aria-label", `${what}, last 24 hours: ${count(ok)} good, ${count(bad)} failed`);
    },
  };
}

/** @param {ReturnType<typeof bars>[number]} b */
function describe(b) {
  const what = b.ok + b.bad === 0 ? (b.frozen ? "frozen" : "nothing") : [b.ok && `${count(b.ok)} good`, b.bad && `${count(b.bad)} failed`].filter(Boolean).join(", ");
  return `${time(b.start).slice(0, 5)}–${time(b.start + b.seconds * 1000).slice(0, 5)}  ${what}`;
}

/** @type {HTMLElement | null} */
let tip = null;

/** Shows a text beside the pointer while it is over an element.
 * @param {Element} el @param {(share: number) => string | null | undefined} text by the share of the width */
function hover(el, text) {
  el.addEventListener("pointermove", (e) => {
    const { clientX, clientY } = /** @type {PointerEvent} */ (e);
    const box = el.getBoundingClientRect();
    const says = text(Math.max(0, Math.min(0.9999, (clientX - box.left) / box.width)));
    if (!says) return;
    tip ??= document.body.appendChild(h("div.tip", { "aria-hidden": "true" }));
    (el.closest("dialog") ?? document.body).append(tip);
    put(tip, says);
    tip.hidden = false;
    const w = tip.offsetWidth;
    tip.style.left = `${Math.max(8, Math.min(innerWidth - w - 8, clientX - w / 2))}px`;
    tip.style.top = `${Math.max(8, box.top - 34 > 0 ? box.top - 34 : clientY + 18)}px`;
  });
  el.addEventListener("pointerleave", () => {
    if (tip) tip.hidden = true;
  });
}
