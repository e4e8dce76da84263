// @ts-check
// The configuration file: shown with its mistakes marked and its secrets masked,
// edited in place, checked while one types, and applied whole.

import { api } from "./api.js";
import { attr, dress, h, icon, list, picture, put, show } from "./dom.js";
import { and, plural } from "./format.js";
import { difference, merge, tally } from "./diff.js";
import { editor } from "./editor.js";
import { live } from "./live.js";
import { toast } from "./toast.js";

/** How long a person must rest before the text is checked, in ms. */
const REST = 350;

export function configView() {
  /** @type {any} the file as it was read */
  let file = null;
  /** @type {any[]} */
  let problems = [];
  /** @type {any} the file as it stands on disk by now, where that is another */
  let theirs = null;
  let failure = "";
  let busy = "";
  let round = 0;
  /** @type {number | undefined} */
  let timer;
  let seen = "";

  const area = editor({ label: "Configuration file", input: () => { clearTimeout(timer); timer = setTimeout(check, REST); draw(); } });
  const path = h("p.mono.quiet.config-path");
  const chipIcon = icon("ok");
  const chipText = h("span");
  const chip = h("span.chip", { role: "status" }, chipIcon, chipText);
  const apply = h("button.button.primary", { type: "button", on: { click: save } }, "Apply");
  const discard = h("button.button", { type: "button", on: { click: () => load(true) } }, "Discard");
  const review = h("button.button", { type: "button", on: { click: () => compare("Your changes", file.text, area.value) } }, "Review");
  const banner = h("div.banner", { role: "alert", hidden: true });
  const found = h("ol.problems");
  const rows = list(found, (p) => `${p.line}:${p.column}:${p.what}`, (p) => problem(p, (n, c) => area.go(n, c)));
  const foundTitle = h("h2");
  const calm = h("p.calm", {}, icon("ok", "icon ink-ok"), "No mistakes.");
  const gone = h("div.panel.empty");
  const work = h("div.config-work", {},
    h("div.panel.editor-panel", {}, area.el),
    h("aside.config-side", {},
      h("section.panel.side", { "aria-label": "Mistakes and warnings" }, h("header", {}, foundTitle), calm, found),
      h("section.panel.side.hint", { id: "editor-hint" }, h("header", {}, h("h2", {}, "Secrets")),
        h("p", {}, "A key shows as ", h("span.tok-mask", {}, "sk-abc***1234"), ". It stays what it is wherever you move or copy the mask. To change a key, write the new one over it; it is masked as soon as it is applied."),
        h("p", {}, "Comments, order and everything you do not touch stay as they are. Nothing is written unless the whole file is valid."))));
  const el = h("div", { id: "view-config" },
    h("div.section-head.first.config-head", {}, h("h1.view-title", {}, "Configuration"), chip, path, h("div.config-actions", {}, review, discard, apply)),
    banner, gone, work);

  const dirty = () => file !== null && area.value !== file.text;
  const errors = () => problems.filter((p) => p.severity === "error");

  function draw() {
    const changed = dirty();
    show(work, file !== null);
    show(gone, file === null);
    if (!file) {
      gone.replaceChildren(h("h2", {}, failure ? "The file cannot be shown" : "Reading the file…"), h("p", {}, failure));
      for (const b of [apply, discard, review]) attr(b, "disabled", true);
      show(chip, false);
      return;
    }
    put(path, `\u200e${file.path}\u200e`); // clipped at its beginning, and read from there all the same
    attr(path, "title", file.path);
    const bad = errors();
    const [pic, tone, says] = busy ? ["trial", "off", busy] : theirs ? ["warn", "bad", "changed on disk"]
      : bad.length ? ["cross", "bad", plural(bad.length, "mistake")] : changed ? ["swap", "warn", lines()] : file.in_force ? ["ok", "ok", "in force"] : ["warn", "warn", "not in force"];
    show(chip, true);
    dress(chip, `chip tone-${tone}`);
    picture(chipIcon, /** @type {any} */ (pic));
    put(chipText, says);
    attr(apply, "disabled", !changed || bad.length > 0 || Boolean(busy) || Boolean(theirs));
    attr(discard, "disabled", !changed || Boolean(busy));
    attr(review, "disabled", !changed);
    rows.update(problems);
    const warnings = problems.length - bad.length;
    put(foundTitle, problems.length ? [bad.length && plural(bad.length, "mistake"), warnings && plural(warnings, "warning")].filter(Boolean).join(", ") : "Mistakes");
    show(calm, problems.length === 0);
    show(found, problems.length > 0);
    attr(/** @type {Element} */ (document.querySelector('.tabs a[data-view="config"]')), "data-dirty", changed);
    conflict();
  }

  function lines() {
    const t = tally(file.text, area.value);
    return `edited, +${t.in} −${t.out} lines`;
  }

  /** What to do where somebody else has changed the file. */
  function conflict() {
    show(banner, theirs !== null);
    if (!theirs || banner.dataset.hash === theirs.hash + area.value.length) return;
    banner.dataset.hash = theirs.hash + area.value.length;
    const merged = merge(file.text, area.value, theirs.text);
    banner.replaceChildren(icon("warn"), h("div", {}, h("strong", {}, "The file has changed on disk since you began."), " Nothing of it is overwritten."),
      h("div.banner-actions", {},
        h("button.button.small", { type: "button", on: { click: () => compare("What changed on disk", file.text, theirs.text) } }, "Show what changed"),
        merged !== null && h("button.button.small", { type: "button", on: { click: () => take(merged) } }, "Put my edit onto it"),
        h("button.button.small", { type: "button", on: { click: () => take(theirs.text) } }, "Take it, drop my edit")));
  }

  /** Goes on with the file as it is on disk. @param {string} text */
  function take(text) {
    file = theirs;
    theirs = null;
    area.load(file.text, file.format, file.masks);
    if (text !== file.text) {
      area.load(text, file.format, file.masks);
      toast("Your edit stands on the new file. Look at it, then apply it.");
    }
    problems = file.problems;
    area.mark(problems);
    draw();
    check();
  }

  /** Reads the file. An edit is kept unless it is to be discarded. @param {boolean} drop */
  async function load(drop) {
    const mine = ++round;
    try {
      const next = await api.config();
      if (mine !== round) return;
      failure = "";
      if (file && !drop && dirty() && next.hash !== file.hash) {
        theirs = next;
      } else if (!file || drop || next.hash !== file.hash) {
        file = next;
        theirs = null;
        problems = next.problems;
        area.load(next.text, next.format, next.masks);
        area.mark(problems);
      } else {
        file.in_force = next.in_force;
        if (!dirty()) {
          problems = next.problems;
          area.mark(problems);
        }
      }
    } catch (err) {
      if (mine !== round) return;
      failure = /** @type {Error} */ (err).message;
      if (!file) file = null;
      else toast(failure, "bad");
    }
    draw();
  }

  /** Says that there are mistakes, and goes to the first. */
  function wrong() {
    const first = errors()[0];
    if (first?.line) area.go(first.line, first.column);
    toast("Nothing was written: the file would not be valid.", "bad");
  }

  async function check() {
    timer = undefined;
    if (!file || !dirty()) {
      if (file) {
        problems = file.problems;
        area.mark(problems);
        draw();
      }
      return;
    }
    const mine = ++round;
    const text = area.value;
    try {
      const answer = await api.check(file.hash, text);
      if (mine !== round || text !== area.value) return;
      problems = answer.problems;
      area.mark(problems);
    } catch (err) {
      if (mine !== round) return;
      const e = /** @type {any} */ (err);
      if (e.status === 412) return load(false);
      toast(e.message, "bad");
    }
    draw();
  }

  async function save() {
    const rested = timer === undefined;
    clearTimeout(timer);
    timer = undefined;
    if (!dirty() || busy || theirs) return;
    if (rested && errors().length) {
      wrong();
      return;
    }
    const mine = ++round;
    busy = "applying";
    draw();
    try {
      const answer = await api.write(file.hash, area.value);
      busy = "";
      if (mine !== round) return;
      const later = answer.needs_restart.length ? ` ${and(answer.needs_restart)} will be in force after a restart.` : "";
      toast("Applied." + later);
      await load(true);
      live.refresh();
    } catch (err) {
      busy = "";
      const e = /** @type {any} */ (err);
      if (e.status === 412) {
        await load(false);
      } else if (e.status === 422 && e.body?.problems) {
        problems = e.body.problems;
        area.mark(problems);
        wrong();
      } else toast(e.message, "bad");
    }
    draw();
  }

  addEventListener("beforeunload", (e) => {
    if (dirty()) e.preventDefault();
  });

  return {
    el, title: "Configuration",
    mayLeave: () => true, // the edit is kept
    shown: () => load(false),
    /** @param {any} view */
    update(view) {
      const now = view.config.hash + view.config.error + view.config.loaded_at;
      if (seen && seen !== now && !busy) load(false);
      seen = now;
    },
    /** @param {KeyboardEvent} e */
    key(e) {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "s") {
        save();
        return true;
      }
      if (e.key === "F8" && problems.length) {
        const line = area.value.slice(0, area.area.selectionStart).split("\n").length;
        const next = problems.find((p) => p.line > line) ?? problems[0];
        if (next.line) area.go(next.line, next.column);
        return true;
      }
      return false;
    },
  };
}

/** @param {any} first @param {(line: number, column: number) => void} go */
function problem(first, go) {
  const text = h("span", {}, first.what);
  const cure = h("span.cure", {}, first.cure);
  const at = first.line ? `Line ${first.line}` : "The file";
  const el = h("li", {}, h("button.problem", { type: "button", class: `problem is-${first.severity}`, on: { click: () => first.line && go(first.line, first.column) } },
    icon(first.severity === "error" ? "cross" : "warn"), h("span", {}, h("span.problem-at", {}, at), " ", text, first.cure ? ": " : "", cure)));
  return { el, update() {} };
}

/** Shows how two texts differ. @param {string} title @param {string} before @param {string} after */
function compare(title, before, after) {
  const rows = difference(before, after);
  const box = h("dialog.box.wide", { "aria-labelledby": "compare-title" },
    h("h2", { id: "compare-title" }, title),
    h("div.diff", { tabindex: "0", role: "region", "aria-label": "Difference" }, rows.length ? rows.map((r) => (r === null ? h("div.diff-gap", {}, "⋯") : h("div", { class: `diff-${r.kind}` }, h("span.diff-sign", {}, { same: " ", out: "−", in: "+" }[r.kind]), r.text))) : h("p.quiet", {}, "No difference.")),
    h("form.box-actions", { method: "dialog" }, h("button.button", {}, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}
