// @ts-check
// The live list of finished requests: filters, a search, and a way into each one.

import { api } from "./api.js";
import { attr, dress, h, icon, list, picture, put, show } from "./dom.js";
import { count, latency, plural, short, time } from "./format.js";
import { live } from "./live.js";
import { modelName } from "./verdict.js";
import { trail } from "./trail.js";

/** How many are kept on the page, and how many are shown at once. */
const KEPT = 1000;
const SHOWN = 100;

/** How an ending looks. @type {Record<string, [any, string, string]>} */
export const ENDINGS = {
  success: ["ok", "ok", "good"],
  passed_through: ["cross", "bad", "passed on"],
  empty: ["empty", "warn", "empty"],
  exhausted: ["down", "bad", "exhausted"],
  broken: ["broken", "bad", "broken"],
  cancelled: ["left", "off", "client left"],
  refused: ["off", "off", "refused"],
};

/** Whether it was saved: it is well after an attempt that was not. @param {any} r */
export const saved = (r) => r.ending === "success" && r.attempt_count > 1;

/** Whether somebody stood in: others failed or were passed over. @param {any} r */
export const stoodIn = (r) => r.ending === "success" && (r.attempt_count > 1 || r.skip_count > 0);

/** @type {[string, string, (r: any) => boolean][]} */
const ONLY = [
  ["all", "All", () => true],
  ["saved", "Saved", saved],
  ["failed", "Failed", (r) => r.failed],
];

export function requestsView() {
  let model = "";
  let only = "all";
  let search = "";
  let paused = false;
  let most = SHOWN;
  let sequence = 0;
  let dropped = 0;
  let missing = "";
  let round = 0;
  let busy = false;
  let state = "loading"; // loading, ready, failed
  /** @type {any[]} newest first */
  let all = [];
  /** @type {any[]} what came while it was paused */
  let waiting = [];
  /** @type {string | null} */
  let marked = null;

  const models = h("select.field", { "aria-label": "Virtual model", on: { change: () => set({ model: models.value }) } });
  const onlys = ONLY.map(([k, name]) => h("button", { type: "button", "aria-pressed": k === only, on: { click: () => set({ only: k }) } }, name));
  const box = h("input.field", { type: "search", placeholder: "Search id, path, client, candidate", "aria-label": "Search", on: { input: () => { search = box.value.trim().toLowerCase(); most = SHOWN; draw(); } } });
  const pauseIcon = icon("pause");
  const pauseText = h("span", {}, "Pause");
  const pause = h("button.button", { type: "button", "aria-pressed": "false", on: { click: () => hold(!paused) } }, pauseIcon, pauseText);
  const tally = h("p.quiet.tally-line", { role: "status" });
  const body = h("tbody", { role: "rowgroup" });
  const heads = ["Time", "Ending", "Virtual model", "Answered by", "Attempts", "Took", "First content", "Tokens", "Request"];
  const table = h("table.requests", { role: "table" }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads.map((t, i) => h(i > 3 && i < 8 ? "th.num" : "th", { scope: "col", role: "columnheader" }, t)))), body);
  const rows = list(body, (r) => r.id + r.sequence, (r) => row(r, (id) => open(id)));
  const more = h("button.button", { type: "button", on: { click: () => { most += SHOWN; draw(); } } }, "Show more");
  const none = h("div.empty");
  const el = h("div", { id: "view-requests" },
    h("div.section-head.first", {}, h("h1.view-title", {}, "Requests"), tally),
    h("div.filters", {}, h("div.segments", { role: "group", "aria-label": "Only" }, onlys), models, h("div.search", {}, icon("search"), box), pause),
    h("div.panel.requests-panel", {}, table, none), h("div.more", {}, more));

  /** @param {{model?: string, only?: string}} next */
  function set(next) {
    // What stands in the address counts: a choice just made may not be here yet.
    const form = new URLSearchParams(location.hash.split("?")[1] ?? "");
    if (next.model !== undefined) form.set("model", next.model);
    if (next.only !== undefined) form.set("only", next.only);
    if (!form.get("model")) form.delete("model");
    if (form.get("only") === "all") form.delete("only");
    const hash = "#/requests" + (form.size ? "?" + form : "");
    if (location.hash === hash) refetch();
    else location.hash = hash;
  }

  /** @param {boolean} on */
  function hold(on) {
    paused = on;
    attr(pause, "aria-pressed", on);
    picture(pauseIcon, on ? "play" : "pause");
    if (!on) {
      all = [...waiting, ...all].slice(0, KEPT);
      waiting = [];
      news();
    }
    draw();
  }

  function refetch() {
    round++;
    busy = false;
    all = [];
    waiting = [];
    sequence = 0;
    most = SHOWN;
    state = "loading";
    draw();
    news();
  }

  async function news() {
    if (busy || !live.view) return;
    busy = true;
    const mine = round;
    try {
      // The server filters what it can, so that failures of long ago are found among
      // a thousand good requests.
      const answer = await api.requests({ limit: sequence ? KEPT : 300, model, failed: only === "failed" ? true : null, after: sequence });
      if (mine !== round) return;
      if (answer.sequence < sequence) return refetch(); // another process answers now
      if (sequence) dropped += answer.dropped;
      sequence = answer.sequence;
      missing = answer.problem ?? "";
      if (paused) waiting = [...answer.requests, ...waiting].slice(0, KEPT);
      else all = [...answer.requests, ...all].slice(0, KEPT);
      state = "ready";
    } catch {
      if (mine === round && state === "loading") state = "failed";
    } finally {
      if (mine === round) busy = false;
    }
    draw();
  }

  const found = () => {
    const pick = /** @type {any} */ (ONLY.find(([k]) => k === only))[2];
    return all.filter((r) => pick(r) && (!search || [r.id, r.path, r.client, r.candidate, r.virtual_model, r.ending, String(r.status)].some((t) => t.toLowerCase().includes(search))));
  };

  function draw() {
    const fit = found();
    const shown = fit.slice(0, most);
    rows.update(shown);
    for (const [k, p] of rows.parts) p.mark(k === marked);
    show(table, shown.length > 0);
    show(none, shown.length === 0);
    show(more, fit.length > shown.length);
    put(pauseText, paused ? (waiting.length ? `${plural(waiting.length, "new one", "new ones")}` : "Paused") : "Pause");
    const good = fit.filter(saved).length;
    put(tally, state === "ready" && fit.length ? `${plural(fit.length, "request")}, ${count(good)} saved after a failure${dropped ? `, ${count(dropped)} came too fast to be shown` : ""}${missing ? `; older ones may be missing: ${missing}` : ""}` : "");
    if (shown.length === 0) {
      const says = state === "loading" ? ["Looking…", ""] : state === "failed" ? ["The requests could not be fetched", "It is tried again as soon as there is news."]
        : search || model || only !== "all" ? ["No such request", "Among those that are kept, nothing fits the filters."] : ["No request yet", "They appear here as they end."];
      none.replaceChildren(h("h2", {}, says[0]), h("p", {}, says[1]));
    }
  }

  /** @param {string} id */
  function open(id) {
    const form = new URLSearchParams(location.hash.split("?")[1] ?? "");
    location.hash = `#/requests/${encodeURIComponent(id)}` + (form.size ? "?" + form : "");
  }

  /** Marks the next or the previous row. @param {number} by */
  function step(by) {
    const keys = [...rows.parts.keys()];
    const order = found().slice(0, most).map((r) => r.id + r.sequence).filter((k) => keys.includes(k));
    if (!order.length) return;
    const at = marked === null ? -1 : order.indexOf(marked);
    marked = order[Math.max(0, Math.min(order.length - 1, at + by))] ?? order[0];
    for (const [k, p] of rows.parts) p.mark(k === marked);
    const part = rows.parts.get(marked);
    part?.el.scrollIntoView({ block: "nearest" });
    part?.focus();
  }

  return {
    el, title: "Requests",
    /** @param {any} view */
    update(view) {
      const wanted = ["", ...view.virtual_models.map((/** @type {any} */ m) => m.name)];
      if (models.childElementCount !== wanted.length || wanted.some((name, i) => models.options[i].value !== name)) {
        models.replaceChildren(...wanted.map((name, i) => h("option", { value: name }, i ? modelName(view.virtual_models[i - 1]) : "All virtual models")));
        models.value = model;
      }
      if (view.sequence !== sequence || state !== "ready") news();
    },
    /** @param {string[]} path @param {URLSearchParams} query */
    route(path, query) {
      const m = query.get("model") ?? "";
      const o = ONLY.some(([k]) => k === query.get("only")) ? /** @type {string} */ (query.get("only")) : "all";
      if (m !== model || o !== only) {
        model = m;
        only = o;
        models.value = model;
        onlys.forEach((b, i) => attr(b, "aria-pressed", ONLY[i][0] === only));
        refetch();
      }
      if (path[0]) {
        const id = decodeURIComponent(path[0]);
        trail(id, () => {
          const form = new URLSearchParams(location.hash.split("?")[1] ?? "");
          if (location.hash.startsWith("#/requests/" + encodeURIComponent(id))) history.replaceState(null, "", "#/requests" + (form.size ? "?" + form : ""));
        });
      }
    },
    search: () => box.focus(),
    /** @param {KeyboardEvent} e */
    key(e) {
      if (e.ctrlKey || e.metaKey || e.altKey || (e.target instanceof HTMLElement && e.target.closest("input, textarea, select, dialog"))) return false;
      if (e.key === "j" || e.key === "k") step(e.key === "j" ? 1 : -1);
      else if (e.key === "p") hold(!paused);
      else return false;
      return true;
    },
  };
}

/** @param {any} r @param {(id: string) => void} open */
function row(r, open) {
  const [pic, tone, says] = ENDINGS[r.ending] ?? ENDINGS.refused;
  const tokens = r.tokens.input_tokens === null && r.tokens.output_tokens === null ? "–" : `${short(r.tokens.input_tokens)} → ${short(r.tokens.output_tokens)}`;
  const name = h("a.request-open", { href: "#/requests/" + encodeURIComponent(r.id), on: { click: (/** @type {Event} */ e) => { e.preventDefault(); e.stopPropagation(); open(r.id); } } }, time(r.start));
  const cell = (/** @type {string} */ tag, /** @type {string} */ label, /** @type {any[]} */ ...children) => h(tag, { role: "cell", "data-name": label }, ...children);
  const el = h("tr", { role: "row", on: { click: () => { if (!String(getSelection())) open(r.id); } } },
    h("th.when", { scope: "row", role: "rowheader" }, name),
    cell("td.how", "", r.ending === "success" ? h("span.good", {}, icon(pic, "icon ink-ok"), r.status) : h("span", { class: `chip tone-${tone}` }, icon(pic), says), r.ending !== "success" && r.status ? h("span.status", {}, r.status) : "",
      saved(r) ? h("span.saved-word", {}, "saved") : ""),
    cell("td.model", "Virtual model", r.virtual_model === "*" ? "the pool" : r.virtual_model || "–"),
    cell("td.by", "Answered by", r.candidate || "–", stoodIn(r) ? h("span.saved", { title: "An understudy answered" }, icon("swap"), h("span.offscreen", {}, "an understudy")) : ""),
    cell("td.num", "Attempts", h("span", {}, r.attempt_count), r.skip_count ? h("span.quiet", { title: `${r.skip_count} passed over` }, ` +${r.skip_count}`) : ""),
    cell("td.num", "Took", latency(r.duration_ms)), cell("td.num", "First content", latency(r.first_content_ms)), cell("td.num", "Tokens", tokens),
    cell("td.what", "Request", h("span.mono.clip", { title: `${r.method} ${r.path}` }, `${r.method} ${r.path}`), h("span.quiet", {}, [r.stream ? "stream" : "", r.client].filter(Boolean).join(" · "))));
  return {
    el, update() {},
    /** @param {boolean} is */
    mark(is) { dress(el, is ? "marked" : r.failed ? "failed" : ""); },
    focus: () => name.focus({ preventScroll: true }),
  };
}
