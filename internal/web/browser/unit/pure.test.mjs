// What the dashboard computes without a page. Run by tools/web.sh: node --test.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../../static/js/format.js";
import { difference, hunks, merge, tally } from "../../static/js/diff.js";
import { tokens } from "../../static/js/highlight.js";
import { lastFailure, overall, standing, verdict } from "../../static/js/verdict.js";
import { bars } from "../../static/js/history.js";
import { lay, ticks } from "../../static/js/trail.js";
import { quote } from "../../static/js/api.js";

/** Thin blanks are blanks here. */
const plain = (text) => text.replaceAll("\u2009", " ").replaceAll("\u202f", " ");

test("numbers are shown short, and what is unknown as unknown", () => {
  for (const [n, want] of [[0, "0"], [999, "999"], [1000, "1.0k"], [12345, "12.3k"], [999999, "1.0M"], [4.2e9, "4.2G"], [null, "–"]]) assert.equal(format.short(n), want);
  for (const [ms, want] of [[null, "–"], [0.2, "<1 ms"], [12.4, "12 ms"], [999.6, "1.00 s"], [9994, "9.99 s"], [12345, "12.3 s"], [125000, "2:05"]]) assert.equal(plain(format.latency(ms)), want);
  for (const [p, want] of [[null, "–"], [0, "0 %"], [1, "100 %"], [0.9996, "99.9 %"], [0.5, "50.0 %"]]) assert.equal(plain(format.percent(p)), want);
  for (const [s, want] of [[0, "0 s"], [6.1, "7 s"], [252, "4:12"], [7390, "2:03:10"], [273600, "3 d 4 h"], [-5, "0 s"]]) assert.equal(plain(format.span(s)), want);
  assert.equal(plain(format.sum(1500, true)), "≥ 1.5k");
  assert.equal(format.sum(null, true), "–");
  assert.equal(format.visible("a\u202eb\u001b[0m\n\tc\u200b"), "a\\u202eb\\u001b[0m\n\tc\\u200b");
});

test("words of a command are quoted as the console reads them", () => {
  assert.equal(quote("auto-strong"), "auto-strong");
  assert.equal(quote("*"), "*");
  assert.equal(quote('a "b" \\c'), '"a \\"b\\" \\\\c"');
  assert.equal(quote(""), '""');
});

test("a difference has the lines around each change", () => {
  assert.deepEqual(hunks(["a", "b", "c"], ["a", "x", "y", "c"]), [{ from: 1, until: 2, lines: ["x", "y"] }]);
  assert.deepEqual(hunks(["a"], ["a"]), []);
  assert.deepEqual(tally("a\nb\nc", "a\nc\nd\ne"), { out: 1, in: 2 });
  const d = difference("1\n2\n3\n4\n5\n6\n7\n8", "1\n2\n3\nfour\n5\n6\n7\n8", 1);
  assert.deepEqual(d.map((l) => l && l.kind[0] + l.text), [null, "s3", "o4", "ifour", "s5", null]);
});

test("a difference leads from one text to the other", () => {
  let seed = 7;
  const next = (n) => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 300; round++) {
    const a = Array.from({ length: next(12) }, () => "abc"[next(3)]);
    const b = Array.from({ length: next(12) }, () => "abc"[next(3)]);
    const out = [];
    let at = 0;
    for (const h of hunks(a, b)) {
      out.push(...a.slice(at, h.from), ...h.lines);
      at = h.until;
    }
    assert.deepEqual([...out, ...a.slice(at)], b);
  }
});

test("an edit is moved onto another's, unless they meet or it holds a mask", () => {
  const base = "1\n2\n3\n4\n5\n6";
  assert.equal(merge(base, "1\ntwo\n3\n4\n5\n6", "1\n2\n3\n4\nfive\n6"), "1\ntwo\n3\n4\nfive\n6");
  assert.equal(merge(base, "1\n2\n3\n4\n5\n6\n7", "0\n1\n2\n3\n4\n5\n6"), "0\n1\n2\n3\n4\n5\n6\n7");
  assert.equal(merge(base, "1\nx\n3\n4\n5\n6", "1\ny\n3\n4\n5\n6"), null);
  assert.equal(merge(base, "1\nkey: ***\n3\n4\n5\n6", "1\n2\n3\n4\nfive\n6"), null);
});

test("a line of the configuration is coloured by what it is", () => {
  const kinds = (line, format = "yaml", masks = ["sk-abc***1234", "***"]) => tokens(line, format, masks).filter((t) => t.kind).map((t) => `${t.kind} ${t.text}`);
  assert.deepEqual(kinds("  port: 8787 # here"), ["key port", "value 8787", "comment # here"]);
  assert.deepEqual(kinds("api_key: sk-abc***1234"), ["key api_key", "mask sk-abc***1234"]);
  assert.deepEqual(kinds('- {name: "a b", api_key: "***", weight: 2}'), ["key name", 'text "a b"', "key api_key", 'text "', "mask ***", 'text "', "key weight", "value 2"]);
  assert.deepEqual(kinds("base_url: https://x/#y"), ["key base_url"]);
  assert.deepEqual(kinds("[[upstream]] # one", "toml"), ["head [[upstream]]", "comment # one"]);
  assert.deepEqual(kinds("weight = 2.5", "toml"), ["key weight", "value 2.5"]);
  for (const line of ["", "   ", "a: 'it''s'", "x: [1, 2", '"unclosed', "🎭: é", "- - a"]) assert.equal(tokens(line, "yaml", []).map((t) => t.text).join(""), line);
});

const candidate = (index, tier, state = "ready", more = {}) => ({ index, tier, name: "c" + index, state, seconds_left: state === "frozen" ? 60 * index : 0, missing_env: [], last_error: "", last_error_at: null, ...more });
const span = (requests, failures) => ({ span: "10m", requests, successes: requests - failures, failures, empty: 0, abandoned: 0, success_rate: requests ? (requests - failures) / requests : null, latency_ms: { avg: 100 }, first_content_ms: { avg: null } });
const model = (name, candidates, w = span(10, 0), more = {}) => ({ name, pool: name === "*", candidates, windows: [w], consecutive_failures: 0, rpm: 0, tpm: null, tpm_incomplete: false, ...more });
const view = (models, more = {}) => ({ virtual_models: models, config: { error: "", needs_restart: [] }, totals: { requests: 5, in_flight: 1 }, archive: { problem: "" }, ...more });

test("the verdict is the worst there is", () => {
  const say = (...models) => verdict(view(models)).title;
  assert.equal(say(model("a", [candidate(1, 1), candidate(2, 2)])), "All is well.");
  assert.equal(say(model("a", [candidate(1, 1, "frozen"), candidate(2, 2)])), "An understudy is on.");
  assert.equal(say(model("a", [candidate(1, 1, "frozen"), candidate(2, 1)])), "All is well.");
  assert.equal(say(model("a", [candidate(1, 1, "disabled"), candidate(2, 2)])), "All is well.");
  assert.equal(say(model("a", [candidate(1, 1, "frozen")]), model("*", [candidate(1, 1)])), "Nobody is left for a.");
  assert.equal(say(model("*", [candidate(1, 1, "ready", { missing_env: ["KEY"] })])), "Nobody is left for the pool.");
  assert.equal(say(model("a", [candidate(1, 1)], span(10, 4))), "Requests for a fail.");
  assert.equal(say(model("a", [candidate(1, 1)], span(3, 2))), "All is well.");
  assert.equal(say(), "Nobody is cast yet.");
  assert.equal(verdict(view([model("a", [candidate(1, 1)], span(0, 0))], { totals: { requests: 0, in_flight: 0 } })).title, "Ready when you are.");
  assert.equal(verdict(view([model("a", [candidate(1, 1)])], { config: { error: "x:1:1: no", needs_restart: [] } })).title, "The configuration file has errors.");
});

test("who serves is the first tier with somebody in it", () => {
  const st = standing(model("a", [candidate(1, 1, "frozen"), candidate(2, 2, "probation"), candidate(3, 2), candidate(4, 3)]));
  assert.deepEqual(st.serving.map((c) => c.name), ["c2", "c3"]);
  assert.equal(st.level, "standin");
  assert.match(plain(standing(model("a", [candidate(1, 1, "frozen"), candidate(2, 2, "frozen")])).points[0].text), /c1 is the first to be back, in 1:00/);
});

test("figures of all models are sums, and means are weighed", () => {
  const o = overall(view([model("a", [], span(10, 2)), model("b", [], { ...span(30, 0), latency_ms: { avg: 300 } })]), "10m");
  assert.equal(o.requests, 40);
  assert.equal(o.rate, 38 / 40);
  assert.equal(Math.round(o.latency), Math.round((8 * 100 + 30 * 300) / 38));
  assert.equal(o.first, null);
  assert.equal(o.tpm, null);
  const f = lastFailure(view([model("a", [candidate(1, 1, "ready", { last_error: "old", last_error_at: "2026-01-01T00:00:00Z" }), candidate(2, 1, "ready", { last_error: "new", last_error_at: "2026-01-02T00:00:00Z" })])]));
  assert.equal(f.text, "new");
  assert.equal(lastFailure(view([])), null);
});

test("a day is added up to bars", () => {
  const n = 144;
  const history = { start: "2026-01-01T00:00:00Z", cell_seconds: 600, states: Array(n).fill("idle"), successes: Array(n).fill(1), failures: Array(n).fill(0) };
  history.states[3] = "frozen";
  history.failures[143] = 4;
  const b = bars(history, 72);
  assert.equal(b.length, 72);
  assert.deepEqual([b[0].ok, b[1].frozen, b[71].bad, b[1].seconds], [2, true, 4, 1200]);
});

test("attempts are laid out on one axis, finer than a millisecond", () => {
  const at = (s) => `2026-01-01T00:00:00.${s}Z`;
  const none = { connected_ms: null, header_ms: null, first_byte_ms: null, first_content_ms: null, released_ms: null, wait_seconds: 0 };
  const r = { start: at("000100000"), duration_ms: 3, released_ms: 2.2, attempts: [
    { ...none, start: at("000200000"), duration_ms: 0.5, connected_ms: 0.1, header_ms: 0.4, verdict: "failed", wait_seconds: 0.001 },
    { ...none, start: at("001700000"), duration_ms: 1.4, header_ms: 0.2, first_content_ms: 0.4, released_ms: 0.6, verdict: "ok" }] };
  const { lanes, length, released } = lay(r);
  assert.equal(length, 3);
  assert.equal(released, 2.2);
  assert.ok(Math.abs(lanes[0].start - 0.1) < 1e-3 && Math.abs(lanes[1].start - 1.6) < 1e-3);
  assert.match(lanes[0].pieces.at(-1).kind, /vain/);
  assert.equal(lanes[1].pieces.at(-1).kind, "body");
  assert.ok(Math.abs(lanes[0].wait.until - lanes[0].wait.from - 1) < 1e-3);
  assert.deepEqual(ticks(4200), [0, 1000, 2000, 3000, 4000]);
  assert.ok(ticks(0.7).length <= 6);
});
