// @ts-check
// What happened over time: requests, tokens, latency and first content, of one
// virtual model or of all, with one cursor over all four.

import { api } from "./api.js";
import { attr, h, show } from "./dom.js";
import { count, latency, short, time } from "./format.js";
import { chart } from "./plot.js";
import { modelName } from "./verdict.js";

const SPANS = [["10m", "10 min"], ["1h", "1 h"], ["6h", "6 h"], ["24h", "24 h"]];

/** How often curves are fetched while there is news, in ms. @type {Record<string, number>} */
const FRESH = { "10m": 5000, "1h": 10000, "6h": 30000, "24h": 30000 };

const total = (/** @type {(number | null)[]} */ list) => list.reduce((/** @type {number | null} */ t, n) => (n === null ? t : (t ?? 0) + n), null);
const latest = (/** @type {(number | null)[]} */ list) => list.findLast((n) => n !== null) ?? null;

/** The four charts. `stack` draws bars over each other, each from 0. */
const CHARTS = [
  {
    title: "Requests", unit: count, kind: "bars", rest: total,
    series: [["good", "--ok-fill", (/** @type {any} */ c) => c.successes], ["failed", "--bad-fill", (/** @type {any} */ c) => c.failures.map((/** @type {number} */ n, /** @type {number} */ i) => n + c.empty[i])], ["client left", "--idle-fill", (/** @type {any} */ c) => c.abandoned]],
  },
  {
    title: "Tokens", unit: short, kind: "steps", rest: total,
    series: [["in", "--line-a", (/** @type {any} */ c) => c.input_tokens], ["cached", "--line-c", (/** @type {any} */ c) => c.cached_tokens], ["out", "--line-b", (/** @type {any} */ c) => c.output_tokens]],
  },
  {
    title: "Latency", unit: latency, kind: "lines", rest: latest,
    series: [["p50", "--line-a", (/** @type {any} */ c) => c.latency_ms.p50], ["p95", "--line-c", (/** @type {any} */ c) => c.latency_ms.p95]],
  },
  {
    title: "First content", unit: latency, kind: "lines", rest: latest,
    series: [["p50", "--line-a", (/** @type {any} */ c) => c.first_content_ms.p50], ["p95", "--line-c", (/** @type {any} */ c) => c.first_content_ms.p95]],
  },
];

export function charts() {
  let model = "";
  let span = localStorage.getItem("span") ?? "1h";
  if (!SPANS.some(([s]) => s === span)) span = "1h";
  let visible = false;
  let fetched = 0;
  let asked = 0;
  let sequence = -1;
  /** @type {any} */
  let curves = null;

  const models = h("select.field", { "aria-label": "Virtual model", on: { change: () => { model = models.value; load(); } } });
  const buttons = SPANS.map(([s, name]) => h("button", { type: "button", "aria-pressed": s === span, on: { click: () => choose(s) } }, name));
  const plots = CHARTS.map((c) => chart(c));
  const trouble = h("p.quiet", { role: "status", hidden: true }, "The curves could not be fetched.");
  const table = asTable(() => curves);
  const el = h("section.charts-section", { "aria-labelledby": "charts-title" },
    h("div.section-head", {}, h("h2", { id: "charts-title" }, "Over time"), models, h("div.segments", { role: "group", "aria-label": "Span" }, buttons)),
    trouble, h("div.charts", {}, plots.map((p) => p.el)), table.el);

  /** @param {string} s */
  function choose(s) {
    span = s;
    localStorage.setItem("span", s);
    buttons.forEach((b, i) => attr(b, "aria-pressed", SPANS[i][0] === s));
    load();
  }

  async function load() {
    const round = ++asked;
    fetched = performance.now();
    try {
      const answer = await api.curves(model, span);
      if (round !== asked) return;
      curves = answer;
      plots.forEach((p) => p.update(answer));
      table.update();
      show(trouble, false);
    } catch {
      if (round === asked) show(trouble, true);
    }
  }

  return {
    el,
    /** @param {any} view */
    update(view) {
      show(el, view.virtual_models.length > 0);
      const wanted = ["", ...view.virtual_models.map((/** @type {any} */ m) => m.name)];
      if (models.childElementCount !== wanted.length || wanted.some((name, i) => models.options[i].value !== name)) {
        models.replaceChildren(...wanted.map((name, i) => h("option", { value: name }, i ? modelName(view.virtual_models[i - 1]) : "All virtual models")));
        if (!wanted.includes(model)) model = "";
        models.value = model;
      }
      const due = performance.now() - fetched > FRESH[span];
      if (visible && (!curves || (due && (view.sequence !== sequence || performance.now() - fetched > 4 * FRESH[span])))) {
        sequence = view.sequence;
        load();
      }
    },
    /** @param {boolean} is */
    shown(is) {
      visible = is;
      if (is) plots.forEach((p) => p.fit());
    },
  };
}

/** The numbers behind the charts, for those who do not see them.
 * @param {() => any} curves */
function asTable(curves) {
  const body = h("tbody");
  const heads = ["From", "good", "failed", "client left", "tokens in", "cached", "out", "latency p50", "p95", "first content p50", "p95"];
  const el = h("details.as-table", { on: { toggle: () => update() } }, h("summary", {}, "The same as a table"),
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Curves as a table" }, h("table.plain", {}, h("thead", {}, h("tr", {}, heads.map((t, i) => h(i ? "th.num" : "th", { scope: "col" }, t)))), body)));
  function update() {
    const c = curves();
    if (!el.open || !c) return;
    const lists = CHARTS.flatMap((chart) => chart.series.map((/** @type {any} */ s) => ({ values: s[2](c), unit: chart.unit })));
    body.replaceChildren(...c.successes.map((/** @type {any} */ _, /** @type {number} */ i) =>
      h("tr", {}, h("th", { scope: "row" }, time(Date.parse(c.start) + i * c.step_seconds * 1000)), lists.map((l) => h("td.num", {}, /** @type {any} */ (l.unit)(l.values[i]))))).reverse());
  }
  return { el, update };
}

