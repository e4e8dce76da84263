// @ts-check
// Who is cast: every virtual model with its tiers and candidates, in one table whose
// numbers stand under each other.

import { attr, dress, h, icon, list, picture, put, show } from "./dom.js";
import { and, count, host, latency, percent, short, span, sum } from "./format.js";
import { freeze, lift } from "./actions.js";
import { candidateSheet, modelSheet } from "./people.js";
import { live } from "./live.js";
import { modelName, standing, usable, windowOf } from "./verdict.js";
import { strip } from "./history.js";
import { LEVELS } from "./overview.js";

/** The windows to choose from. */
export const WINDOWS = [["10m", "10 min"], ["1h", "1 h"], ["6h", "6 h"], ["all", "all"]];

const COLUMNS = ["", "Candidate", "State", "In flight", "Answered", "Latency", "First content", "Tokens", "Cached", "Last 24 hours", ""];

export function cast() {
  let shown = localStorage.getItem("window") ?? "10m";
  if (!WINDOWS.some(([w]) => w === shown)) shown = "10m";
  /** @type {any} */
  let last = null;
  const buttons = WINDOWS.map(([w, name]) => h("button", { type: "button", "aria-pressed": w === shown, on: { click: () => choose(w) } }, name));
  const table = h("table.cast", { role: "table" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, COLUMNS.map((c, i) => h(i > 2 && i < 9 ? "th.num" : "th", { scope: "col", role: "columnheader" }, c || h("span.offscreen", {}, i ? "Actions" : "Index"))))));
  const bodies = list(rowsAfter(table, /** @type {any} */ (table).tHead), (m) => m.name, (m) => body(m));
  const el = h("section.cast-section", { "aria-labelledby": "cast-title" },
    h("div.section-head", {}, h("h2", { id: "cast-title" }, "The cast"),
      h("div.segments", { role: "group", "aria-label": "Figures of the last" }, buttons)),
    h("div.panel.cast-panel", {}, table));
  /** @param {string} w */
  function choose(w) {
    shown = w;
    localStorage.setItem("window", w);
    buttons.forEach((b, i) => attr(b, "aria-pressed", WINDOWS[i][0] === w));
    if (last) bodies.update(last.virtual_models.map((/** @type {any} */ m) => ({ ...m, shown, view: last })));
  }
  return {
    el,
    /** @param {any} view */
    update(view) {
      last = view;
      show(el, view.virtual_models.length > 0);
      bodies.update(view.virtual_models.map((/** @type {any} */ m) => ({ ...m, shown, view })));
    },
    tick() {
      for (const b of bodies.parts.values()) b.tick();
    },
  };
}

/** A model and its candidates. thead stays the table's first child. @param {any} first */
function body(first) {
  let model = first;
  const name = h("button.link.model-name", { type: "button", on: { click: () => modelSheet(model.name) } });
  const kind = h("span.quiet.model-kind");
  const serving = h("span.serving-text");
  const mark = icon("ok");
  const chip = h("span.chip", {}, mark, serving);
  const cells = figures();
  const bar = strip("");
  const row = h("tr.model-row", { role: "row" },
    h("th.model-cell", { scope: "rowgroup", role: "rowheader", colspan: "2" }, name, kind),
    h("td.state", { role: "cell" }, chip),
    cells.els,
    h("td.history-cell", { role: "cell" }, bar.el), h("td", { role: "cell" }));
  const el = h("tbody", { role: "rowgroup" }, row);
  const parts = list(rowsAfter(el, row), (c) => String(c.index) + c.identity, (c) => candidate(c));
  return {
    el,
    /** @param {any} m */
    update(m) {
      model = m;
      const st = standing(m);
      const w = windowOf(m, m.shown);
      put(name, modelName(m));
      put(kind, [st.serving.length ? `${and(st.serving.map((c) => c.name))} ${st.serving.length > 1 ? "serve" : "serves"}` : "nobody serves", m.delivery === "stream" ? "" : `delivery ${m.delivery}`].filter(Boolean).join(" · "));
      const tone = LEVELS[st.level].tone;
      dress(chip, `chip tone-${st.serving.length ? tone : "bad"}`);
      picture(mark, LEVELS[st.level].icon);
      put(serving, st.level === "ok" || st.level === "note" ? "well" : st.level === "standin" ? "understudy on" : st.level === "trouble" ? "failing" : "nobody left");
      cells.update(m, w, m.in_flight);
      bar.update(m.history);
      attr(bar.el, "aria-label", `${modelName(m)}: ${bar.el.getAttribute("aria-label")}`);
      const tiers = new Map();
      for (const c of m.candidates) tiers.set(c.tier, (tiers.get(c.tier) ?? 0) + 1);
      parts.update(m.candidates.map((/** @type {any} */ c, /** @type {number} */ i) => ({
        ...c, m, window: windowOf(c, m.shown), serves: st.serving.some((x) => x.index === c.index),
        freeze: m.view.freezes.find((/** @type {any} */ f) => f.identity === c.identity && f.virtual_model === m.name),
        equal: tiers.get(c.tier) > 1, first: i === 0 || m.candidates[i - 1].tier !== c.tier, final: i === m.candidates.length - 1 || m.candidates[i + 1].tier !== c.tier,
      })));
    },
    tick() {
      for (const p of parts.parts.values()) p.tick();
    },
  };
}

/** A box for list() whose children come behind the first one.
 * @param {Element} el @param {Element} first @returns {any} */
function rowsAfter(el, first) {
  return {
    get firstElementChild() { return first.nextElementSibling; },
    /** @param {Element} node @param {Element | null} before */
    insertBefore: (node, before) => el.insertBefore(node, before),
  };
}

/** The number cells of a row. */
function figures() {
  /** @param {string} name */
  const cell = (name) => {
    const value = h("span.value");
    const sub = h("small");
    return { el: h("td.num", { role: "cell", "data-name": name }, value, sub), value, sub };
  };
  const flight = cell("In flight");
  const answered = cell("Answered");
  const slow = cell("Latency");
  const first = cell("First content");
  const tokens = cell("Tokens");
  const cached = cell("Cached");
  return {
    els: [flight.el, answered.el, slow.el, first.el, tokens.el, cached.el],
    /** @param {any} of @param {any} w @param {number} inFlight */
    update(of, w, inFlight) {
      put(flight.value, count(inFlight));
      dress(flight.value, inFlight ? "value" : "value quiet");
      put(flight.sub, of.max_parallel ? `of ${of.max_parallel}` : "");
      put(answered.value, percent(w.success_rate));
      dress(answered.value, w.success_rate !== null && w.success_rate < 0.9 ? "value ink-bad" : w.success_rate === null ? "value quiet" : "value");
      put(answered.sub, w.requests ? `${short(w.successes)} of ${short(w.requests - (w.abandoned && of.candidates ? w.abandoned : 0))}` : "");
      times(slow, w.latency_ms);
      times(first, w.first_content_ms);
      const known = w.input_tokens !== null || w.output_tokens !== null;
      put(tokens.value, known ? sum(w.input_tokens, w.tokens_incomplete) : "–");
      dress(tokens.value, known ? "value" : "value quiet");
      put(tokens.sub, known ? `${short(w.output_tokens)} out` : w.successes ? "unknown" : "");
      put(cached.value, percent(w.cache_hit_rate));
      dress(cached.value, w.cache_hit_rate === null ? "value quiet" : "value");
    },
  };
}

/** @param {{value: HTMLElement, sub: HTMLElement}} cell @param {any} t */
function times(cell, t) {
  put(cell.value, latency(t.p50));
  dress(cell.value, t.p50 === null ? "value quiet" : "value");
  put(cell.sub, t.p95 === null ? "" : `p95 ${latency(t.p95)}`);
}

/** How a state looks. @param {any} c @returns {[any, string, string]} picture, tone, word */
export function look(c) {
  switch (c.state) {
    case "frozen": return ["ice", "ice", "frozen"];
    case "probation": return ["trial", "warn", "probation"];
    case "disabled": return ["off", "off", "disabled"];
  }
  if (!usable(c)) return ["warn", "warn", "no key"];
  return c.serves ? ["ok", "ok", "serves"] : ["empty", "off", "ready"];
}

/** @param {any} first */
function candidate(first) {
  let c = first;
  const index = h("td.index", { role: "cell" });
  const name = h("button.link.candidate-name", { type: "button", on: { click: () => candidateSheet(c.m.name, c.identity, c.index) } });
  const under = h("span.under.mono");
  const mark = icon("ok");
  const word = h("span");
  const chip = h("span.chip", {}, mark, word);
  const left = h("span.countdown");
  const why = h("span.under");
  const cells = figures();
  const bar = strip("");
  const act = h("button.button.bare.small.square", { type: "button", on: { click: () => (c.freeze ? lift(c.freeze) : freeze(c.m, c)) } });
  const actIcon = icon("ice");
  act.append(actIcon);
  const el = h("tr.candidate-row", { role: "row" }, index,
    h("th.candidate-cell", { scope: "row", role: "rowheader" }, name, under),
    h("td.state", { role: "cell" }, h("span.state-line", {}, chip, left), why),
    cells.els,
    h("td.history-cell", { role: "cell" }, bar.el),
    h("td.act", { role: "cell" }, act));
  return {
    el,
    /** @param {any} next */
    update(next) {
      c = next;
      dress(el, `candidate-row${c.equal ? " equal" : ""}${c.equal && c.first ? " equal-first" : ""}${c.equal && c.final ? " equal-final" : ""}${usable(c) ? "" : " out"}${c.window.requests || c.in_flight ? "" : " idle"}`);
      put(index, c.index);
      attr(index, "title", c.equal ? `tier ${c.tier}, among equals` : `tier ${c.tier}`);
      put(name, c.name);
      put(under, [c.model, host(c.base_url)].filter(Boolean).join(" · "));
      attr(under, "title", `${c.model} at ${c.base_url}`);
      const [pic, tone, says] = look(c);
      dress(chip, `chip tone-${tone}`);
      picture(mark, pic);
      put(word, says);
      const reason = c.missing_env.length ? `${c.missing_env.join(", ")} is not set` : c.reason;
      put(why, reason);
      attr(why, "title", reason || null);
      show(why, reason !== "");
      cells.update(c, c.window, c.in_flight);
      bar.update(c.history);
      attr(bar.el, "aria-label", `${c.name}: ${bar.el.getAttribute("aria-label")}`);
      const frozen = c.state === "frozen";
      attr(act, "aria-label", frozen ? `Lift the freeze of ${c.name}` : `Freeze ${c.name}`);
      attr(act, "title", frozen ? "Lift the freeze" : "Freeze…");
      dress(actIcon, frozen ? "icon ink-ice" : "icon");
      picture(actIcon, frozen ? "play" : "ice");
      this.tick();
    },
    tick() {
      if (c.state !== "frozen") return put(left, "");
      const end = c.freeze ? Date.parse(c.freeze.until) : Date.parse(c.m.view.time) + c.seconds_left * 1000;
      put(left, span((end - live.now()) / 1000));
    },
  };
}
