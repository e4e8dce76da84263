// @ts-check
// Differences of texts by lines. Nothing here touches the page.

/** @typedef {{kind: "same" | "out" | "in", text: string}} Line */
/** A stretch of the old lines and what stands in its place. @typedef {{from: number, until: number, lines: string[]}} Hunk */

/** Above this product of line counts the middle counts as changed whole. */
const MOST = 4e6;

/**
 * The stretches that changed, in order.
 * @param {string[]} a @param {string[]} b
 * @returns {Hunk[]}
 */
export function hunks(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const n = a.length - head - tail;
  const m = b.length - head - tail;
  if (n === 0 && m === 0) return [];
  if (n === 0 || m === 0 || n * m > MOST) return [{ from: head, until: head + n, lines: b.slice(head, head + m) }];
  // The longest common subsequence, backwards, so that it is read forwards.
  const width = m + 1;
  const long = new Uint32Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--) {
    for (let k = m - 1; k >= 0; k--) {
      long[i * width + k] = a[head + i] === b[head + k] ? long[(i + 1) * width + k + 1] + 1 : Math.max(long[(i + 1) * width + k], long[i * width + k + 1]);
    }
  }
  /** @type {Hunk[]} */
  const out = [];
  let i = 0;
  let k = 0;
  /** @type {Hunk | null} */
  let open = null;
  while (i < n || k < m) {
    if (i < n && k < m && a[head + i] === b[head + k]) {
      open = null;
      i++;
      k++;
      continue;
    }
    if (!open) out.push((open = { from: head + i, until: head + i, lines: [] }));
    if (k >= m || (i < n && long[(i + 1) * width + k] >= long[i * width + k + 1])) {
      i++;
      open.until = head + i;
    } else open.lines.push(b[head + k++]);
  }
  return out;
}

/**
 * The lines of a difference, with a few of those around each change; null stands for
 * lines left out.
 * @param {string} before @param {string} after @param {number} around
 * @returns {(Line | null)[]}
 */
export function difference(before, after, around = 2) {
  const a = before.split("\n");
  const b = after.split("\n");
  /** @type {(Line | null)[]} */
  const out = [];
  let at = 0;
  const same = (/** @type {number} */ from, /** @type {number} */ until) => {
    for (let i = from; i < until; i++) out.push({ kind: "same", text: a[i] });
  };
  const all = hunks(a, b);
  all.forEach((hunk, i) => {
    const from = Math.max(at, hunk.from - around);
    if (from > at) out.push(null);
    same(from, hunk.from);
    for (let k = hunk.from; k < hunk.until; k++) out.push({ kind: "out", text: a[k] });
    for (const text of hunk.lines) out.push({ kind: "in", text });
    at = Math.min(hunk.until + around, i + 1 < all.length ? all[i + 1].from : a.length);
    same(hunk.until, at);
  });
  if (all.length && at < a.length) out.push(null);
  return out;
}

/** How many lines were taken out and put in.
 * @param {string} before @param {string} after */
export function tally(before, after) {
  let out = 0;
  let put = 0;
  for (const hunk of hunks(before.split("\n"), after.split("\n"))) {
    out += hunk.until - hunk.from;
    put += hunk.lines.length;
  }
  return { out, in: put };
}

/**
 * Moves an edit onto a text that somebody else has changed meanwhile. null where both
 * changed the same lines, or where the edit holds a mask: after the other's change it
 * may stand for another secret.
 * @param {string} base @param {string} mine @param {string} theirs
 * @returns {string | null}
 */
export function merge(base, mine, theirs) {
  const a = base.split("\n");
  const own = hunks(a, mine.split("\n"));
  const other = hunks(a, theirs.split("\n"));
  if (own.some((h) => h.lines.some((line) => line.includes("***")))) return null;
  for (const x of own) {
    for (const y of other) {
      if (x.from <= y.until && y.from <= x.until) return null;
    }
  }
  const out = [];
  let at = 0;
  for (const h of [...own, ...other].sort((x, y) => x.from - y.from)) {
    out.push(...a.slice(at, h.from), ...h.lines);
    at = h.until;
  }
  return [...out, ...a.slice(at)].join("\n");
}
