// @ts-check
// One virtual model or one candidate, looked at closely: every window, every
// setting, the whole day.

import { attr, dress, h, icon, picture, put, show } from "./dom.js";
import { ago, count, latency, percent, span, sum, time, UNKNOWN, until, words } from "./format.js";
import { freeze, lift } from "./actions.js";
import { live } from "./live.js";
import { modelName, standing, usable } from "./verdict.js";
import { look } from "./cast.js";
import { sheet } from "./sheet.js";
import { strip } from "./history.js";

/** @type {[string, (w: any, of: any) => string][]} */
const ROWS = [
  ["Requests", (w) => count(w.requests)],
  ["Answered", (w) => percent(w.success_rate)],
  ["Failed", (w) => count(w.failures)],
  ["Empty", (w) => count(w.empty)],
  ["Client left", (w) => count(w.abandoned)],
  ["Latency, mean", (w) => latency(w.latency_ms.avg)],
  ["p50", (w) => latency(w.latency_ms.p50)],
  ["p95", (w) => latency(w.latency_ms.p95)],
  ["p99", (w) => latency(w.latency_ms.p99)],
  ["First content, p50", (w) => latency(w.first_content_ms.p50)],
  ["p95", (w) => latency(w.first_content_ms.p95)],
  ["Tokens in", (w) => sum(w.input_tokens, w.tokens_incomplete)],
  ["Tokens out", (w) => sum(w.output_tokens, w.tokens_incomplete)],
  ["Tokens cached", (w) => sum(w.cached_tokens, w.cached_tokens_incomplete)],
  ["Cache hits", (w) => percent(w.cache_hit_rate)],
];

const SPANS = [["10m", "10 min"], ["30m", "30 min"], ["1h", "1 h"], ["6h", "6 h"], ["all", "all"]];

/** The table of all windows. @param {string} attempts what is counted */
function windows(attempts) {
  const cells = ROWS.map(() => SPANS.map(() => h("td.num")));
  const el = h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Figures by window" }, h("table.plain", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span.offscreen", {}, "Figure")), SPANS.map(([, name]) => h("th.num", { scope: "col" }, name)))),
    h("tbody", {}, ROWS.map(([name], i) => h("tr", { class: /^p\d/.test(name) ? "minor" : null }, h("th", { scope: "row" }, i === 0 ? attempts : name), cells[i])))));
  return {
    el,
    /** @param {any} of */
    update(of) {
      SPANS.forEach(([s], k) => {
        const w = of.windows.find((/** @type {any} */ x) => x.span === s);
        ROWS.forEach(([, f], i) => put(cells[i][k], w ? f(w, of) : UNKNOWN));
      });
    },
  };
}

/** A list of names and values. @param {[string, any][]} pairs */
const facts = (pairs) => h("dl.facts", {}, pairs.filter(([, v]) => v !== null && v !== "" && v !== undefined).map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))));

/** What a rule wants and does, in a line. @param {any} r */
export function ruleLine(r) {
  const when = [r.status.length && r.status.join(", "), r.fault.length && `fault ${r.fault.join(", ")}`, r.body_regex && `body ~ ${r.body_regex}`].filter(Boolean).join(" and ");
  const how = {
    retry: `retry, at most ${r.max_attempts} attempts, wait ${r.backoff_base}ⁿ s up to ${r.max_wait} s`,
    freeze: `freeze ${words(r.freeze_seconds)}, or as long as the answer asks`,
  }[/** @type {"retry" | "freeze"} */ (r.action)] ?? r.action;
  return `${when} → ${how}`;
}

/** Keeps a sheet fresh until it is closed. @param {(view: any) => void} update */
function follow(update) {
  const reader = (/** @type {any} */ l) => update(l.view);
  live.read(reader);
  live.tickers.add(reader);
  return () => {
    live.readers.delete(reader);
    live.tickers.delete(reader);
  };
}

/** @param {string} name */
export function modelSheet(name) {
  const find = (/** @type {any} */ view) => view.virtual_models.find((/** @type {any} */ m) => m.name === name);
  const model = find(live.view);
  if (!model) return;
  const state = h("p.sheet-sub");
  const table = windows("Requests");
  const bar = strip(modelName(model), 144);
  const error = h("p.last-text");
  const rules = h("ol.rules");
  const axis = h("p.axis", {}, h("span", {}, "24 h ago"), h("span", {}, "now"));
  const ruleHead = h("h3", {}, "Rules");
  const stop = follow((view) => {
    const m = find(view);
    if (!m) return;
    const st = standing(m);
    put(state, st.points[0]?.text ?? `${st.serving.map((c) => c.name).join(", ")} ${st.serving.length > 1 ? "serve" : "serves"}.`);
    table.update(m);
    bar.update(m.history);
    put(error, m.last_error ? `${ago((live.now() - Date.parse(m.last_error_at)) / 1000)}: ${m.last_error}` : "Nothing has failed yet.");
    const all = [...m.rules.map((/** @type {any} */ r) => ["its own", r]), ...(m.pool ? [] : view.rules.map((/** @type {any} */ r) => [view.built_in_rules ? "built in" : "common", r]))];
    const lines = all.map(([of, r]) => `${ruleLine(r)}  (${of})`);
    if (rules.childElementCount !== lines.length) rules.replaceChildren(...lines.map(() => h("li")));
    lines.forEach((t, i) => put(rules.children[i], t));
    show(ruleHead, lines.length > 0);
  });
  sheet({
    label: modelName(model), closed: stop,
    head: [h("h2", {}, modelName(model)), state],
    body: [h("h3", {}, "Last 24 hours"), bar.el, axis, table.el, h("h3", {}, "Failed last"), error,
      h("p", {}, h("a", { href: "#/requests?model=" + encodeURIComponent(name) }, "Its requests")), ruleHead, rules],
  });
}

/** @param {string} model @param {string} identity @param {number} index */
export function candidateSheet(model, identity, index) {
  const find = (/** @type {any} */ view) => {
    const m = view.virtual_models.find((/** @type {any} */ x) => x.name === model);
    const all = m?.candidates.filter((/** @type {any} */ c) => c.identity === identity) ?? [];
    return { m, c: all.find((/** @type {any} */ c) => c.index === index) ?? all[0] };
  };
  const { c: first } = find(live.view);
  if (!first) return;
  const mark = icon("ok");
  const word = h("span");
  const chip = h("span.chip", {}, mark, word);
  const left = h("span.countdown");
  const why = h("p.quiet");
  const button = h("button.button", { type: "button" });
  const table = windows("Attempts");
  const bar = strip(first.name, 144);
  const error = h("p.last-text");
  const settings = h("div");
  const stop = follow((view) => {
    const { m, c } = find(view);
    if (!c) return;
    const f = view.freezes.find((/** @type {any} */ x) => x.identity === identity && x.virtual_model === model);
    const [pic, tone, says] = look({ ...c, serves: standing(m).serving.some((x) => x.index === c.index) });
    dress(chip, `chip tone-${tone}`);
    picture(mark, pic);
    put(word, says);
    put(left, f ? `${span((Date.parse(f.until) - live.now()) / 1000)} left, until ${until(Date.parse(f.until), live.now())}` : "");
    put(why, c.missing_env.length ? `${c.missing_env.join(", ")} is not set` : c.reason);
    show(why, why.textContent !== "");
    put(button, c.state === "frozen" ? "Lift the freeze" : "Freeze…");
    button.onclick = () => (f ? lift(f) : freeze(m, c));
    table.update(c);
    bar.update(c.history);
    put(error, c.last_error ? `${time(c.last_error_at)}: ${c.last_error}` : "Nothing has failed yet.");
    const key = JSON.stringify([c.key, c.timeouts, c.weight, c.headers, c.overrides, c.freezes, c.hedged, c.consecutive_failures, c.index, c.tier, c.max_parallel, c.rpm_limit, c.tpm_limit]);
    if (settings.dataset.key !== key) {
      settings.dataset.key = key;
      settings.replaceChildren(facts(settingsOf(c)));
    }
    attr(button, "disabled", c.state === "disabled");
  });
  sheet({
    label: first.name, closed: stop,
    head: [h("h2", {}, first.name), h("p.sheet-sub.mono", {}, `${first.model || "the client's model"} · ${first.base_url}`)],
    body: [h("div.sheet-actions", {}, chip, left, button), why, h("h3", {}, "Last 24 hours"), bar.el, h("p.axis", {}, h("span", {}, "24 h ago"), h("span", {}, "now")),
      table.el, h("h3", {}, "Failed last"), error, h("h3", {}, "Settings"), settings],
  });
}

/** @param {any} c @returns {[string, any][]} */
function settingsOf(c) {
  const t = c.timeouts;
  const own = (/** @type {string} */ k) => (c.overrides.includes(k) ? " (its own)" : "");
  return [
    ["Place", `${c.index}, in tier ${c.tier}`],
    ["Key", c.key], ["Sent as", c.auth_style],
    ["Headers", c.headers.join(", ")],
    ["Weight", String(c.weight)],
    ["Connect", words(t.connect_timeout)],
    ["Stall", words(t.stall_timeout) + own("stall_timeout")],
    ["Stream", words(t.stream_timeout) + own("stream_timeout")],
    ["Non-stream", words(t.nonstream_timeout) + own("nonstream_timeout")],
    ["First content", t.content_timeout ? words(t.content_timeout) + own("content_timeout") : "no limit"],
    ["At once", c.max_parallel || "no limit"], ["Requests a minute", c.rpm_limit || "no limit"], ["Tokens a minute", c.tpm_limit || "no limit"],
    ["Frozen so far", `${count(c.freezes)} times, ${count(c.hedged)} of them by auto-hedge`],
    ["Failures in a row", count(c.consecutive_failures)],
    ["Identity", h("code", {}, c.identity)],
    ["Usable", usable(c) ? "yes" : "no"],
  ];
}
