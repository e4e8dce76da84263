// @ts-check
// One chart: uPlot with the dashboard's colours, a legend that shows the numbers
// under the cursor, and a sentence for those who do not see it.

import uPlot from "../vendor/uplot/uPlot.esm.js";
import { attr, h, put, show } from "./dom.js";
import { time } from "./format.js";
import { onTheme } from "./theme.js";

const HEIGHT = 148;
const FONT = '11px Geist, system-ui, sans-serif';

/** A colour of the theme that is on. @param {string} name */
const colour = (name) => {
  probe.style.color = `var(${name})`;
  if (!probe.isConnected) document.body.append(probe);
  return getComputedStyle(probe).color;
};
const probe = h("span", { hidden: true });

/** @type {Map<string, string>} */
let colours = new Map();
/** @param {string} name */
function cached(name) {
  let c = colours.get(name);
  if (!c) colours.set(name, (c = colour(name)));
  return c;
}
/** @param {string} name @param {number} alpha */
const faint = (name, alpha) => cached(name).replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

/** @type {any[]} */
const drawn = [];
onTheme(() => {
  colours = new Map();
  for (const u of drawn) u.redraw();
});

/** Joins the two sides of a short gap: nobody calls in every stretch.
 * @param {any} u @param {number} _s @param {number} _i0 @param {number} _i1 @param {[number, number][]} gaps */
const shortGaps = (u, _s, _i0, _i1, gaps) => {
  const step = u.data[0].length > 1 ? u.valToPos(u.data[0][1], "x", true) - u.valToPos(u.data[0][0], "x", true) : 0;
  return gaps.filter(([a, b]) => b - a > step * 8);
};

/**
 * @param {any} c  title, unit, kind (bars, steps, lines), rest, series [name, colour, of]
 */
export function chart(c) {
  const values = c.series.map(() => h("span.legend-value"));
  const when = h("span.chart-when");
  const box = h("div.chart-box", { "aria-hidden": "true" });
  const none = h("p.chart-none", {}, "Nothing in this time");
  const summary = h("p.offscreen");
  const el = h("figure.panel.chart", {},
    h("figcaption", {}, h("span.chart-title", {}, c.title), when,
      h("span.legend", {}, c.series.map((/** @type {any} */ s, /** @type {number} */ i) => h("span.legend-item", {}, h("i", { class: `swatch swatch${s[1]}` }), s[0], " ", values[i])))),
    summary, box, none);
  /** @type {any} */
  let u = null;
  /** @type {any[][]} */
  let lists = [];
  let at = /** @type {number | null} */ (null);
  let step = 60;

  function legend() {
    lists.forEach((l, i) => put(values[i], c.unit(at === null ? c.rest(l) : l[at])));
    const start = u?.data[0][at ?? 0];
    put(when, at === null || start === undefined ? "" : `${time(start * 1000).slice(0, step < 60 ? 8 : 5)}–${time((start + step) * 1000).slice(0, step < 60 ? 8 : 5)}`);
  }

  function options() {
    const n = c.series.length;
    return {
      width: Math.max(200, box.clientWidth), height: HEIGHT, padding: [8, 14, 0, 0], legend: { show: false },
      cursor: { sync: { key: "understudy" }, points: { show: c.kind !== "bars", size: 6 }, drag: { x: false, y: false }, y: false },
      hooks: { setCursor: [(/** @type {any} */ v) => { at = v.cursor.left >= 0 ? v.cursor.idx ?? null : null; legend(); }] },
      scales: { x: { time: true, range: (/** @type {any} */ _, /** @type {number} */ min, /** @type {number} */ max) => [min, max + step] }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ max) => [0, Math.max(max || 0, c.kind === "bars" ? 4 : 1) * 1.08] } },
      axes: [
        { stroke: () => cached("--ink-3"), font: FONT, size: 24, gap: 4, space: 64, grid: { show: false }, ticks: { show: false }, values: (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map((t) => time(t * 1000).slice(0, 5)) },
        { stroke: () => cached("--ink-3"), font: FONT, size: 50, gap: 6, space: 34, grid: { stroke: () => cached("--line"), width: 1 }, ticks: { show: false }, values: (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map((v) => (v === 0 ? "0" : c.unit(v))) },
      ],
      series: [{}, ...c.series.map((/** @type {any} */ _, /** @type {number} */ i) => line(c.kind === "bars" ? n - 1 - i : i))],
    };
  }

  /** @param {number} i the place in c.series */
  function line(i) {
    const name = c.series[i][1];
    if (c.kind === "bars") return { stroke: () => cached(name), fill: () => cached(name), width: 0, points: { show: false }, paths: uPlot.paths.bars?.({ size: [0.72, 14], align: 1, radius: 0.15 }) };
    const base = { stroke: () => cached(name), width: i === 0 ? 1.8 : 1.5, gaps: shortGaps, points: { show: false } };
    if (c.kind === "steps") return { ...base, fill: () => faint(name, i === 0 ? 0.12 : 0), paths: uPlot.paths.stepped?.({ align: 1 }) };
    return { ...base, fill: () => faint(name, i === 0 ? 0.08 : 0), points: { show: true, size: 4, width: 0, fill: () => cached(name), filter: lonely } };
  }

  /** Only points without neighbours are drawn: a line shows the others.
   * @param {any} v @param {number} s @param {boolean} shown */
  function lonely(v, s, shown) {
    if (!shown) return null;
    const d = v.data[s];
    const out = [];
    for (let k = 0; k < d.length; k++) if (d[k] !== null) {
      const near = (/** @type {number} */ from, /** @type {number} */ to) => d.slice(Math.max(0, from), to).some((/** @type {any} */ x) => x !== null);
      if (!near(k - 8, k) && !near(k + 1, k + 9)) out.push(k);
    }
    return out;
  }

  const grow = new ResizeObserver(() => fit());
  grow.observe(box);
  function fit() {
    if (u && box.clientWidth && Math.abs(box.clientWidth - u.width) > 1) u.setSize({ width: box.clientWidth, height: HEIGHT });
  }

  return {
    el, fit,
    /** @param {any} curves */
    update(curves) {
      lists = c.series.map((/** @type {any} */ s) => s[2](curves));
      step = curves.step_seconds;
      const start = Date.parse(curves.start) / 1000;
      const xs = curves.successes.map((/** @type {any} */ _, /** @type {number} */ i) => start + i * step);
      // Bars stand on each other: the last is drawn first and reaches highest.
      const ys = c.kind !== "bars" ? lists : lists.map((_, i) => xs.map((/** @type {any} */ __, /** @type {number} */ k) => lists.slice(0, lists.length - i).reduce((t, l) => t + l[k], 0)));
      if (!u) {
        if (!box.clientWidth) return;
        u = new uPlot(options(), [xs, ...ys], box);
        drawn.push(u);
      } else u.setData([xs, ...ys]);
      const nothing = lists.every((l) => l.every((n) => !n));
      show(none, nothing);
      legend();
      put(summary, `${c.title}: ${c.series.map((/** @type {any} */ s, /** @type {number} */ i) => `${s[0]} ${c.unit(c.rest(lists[i]))}`).join(", ")}${c.kind === "lines" ? " at last" : " in all"}.`);
      attr(el, "data-empty", nothing);
    },
  };
}
