// A difference, as Git prints it: lines below one another, and comments on them that are sent as one message.
//
// A comment names the file, the line, the id of the file's content, and the line itself: who reads the message finds the
// place without this page.

import { html } from "./text.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor.js";
import { Trouble } from "./parts.js";

/** Asks again whenever `on` changes; the answer before stays until the next is there. */
export function useAnswer(ask, on) {
  const [answer, set] = useState({ value: null, error: null });
  useEffect(() => {
    let gone = false;
    ask().then((value) => gone || set({ value, error: null }), (error) => gone || set({ value: null, error }));
    return () => (gone = true);
  }, on);
  return answer;
}

const LINES_MAX = 5000;

/** A path as Git writes it after `+++ b/`: in quotes where it has to. */
const path = (text) => text.replace(/^"?[ab]\//, "").replace(/"?\t?$/, "");

/** What the heading of a file says in its own words, or not at all. */
const HEADS = /^(?:(new file mode|deleted file mode|rename from|old mode) (.*)|(?:index|---|\+\+\+|similarity index|rename to|copy from|copy to|new mode) .*)$/;

/** The lines, each with the place that it is of. */
export function parse(diff) {
  const rows = [];
  let file = null;
  let old = 0;
  let now = 0;
  let left = [0, 0];
  for (const text of diff.split("\n").slice(0, LINES_MAX)) {
    const inside = left[0] > 0 || left[1] > 0;
    const hunk = text.match(/^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/);
    if (!inside && text.startsWith("diff ")) {
      file = { path: null, was: null, blobs: [null, null], what: "", plus: 0, minus: 0, named: text.slice(text.lastIndexOf(" b/") + 3).replace(/"$/, "") };
      rows.push({ text: "", kind: "file", of: file });
      continue;
    }
    const index = !inside && text.match(/^index ([0-9a-f]+)\.\.([0-9a-f]+)/);
    if (index && file) file.blobs = [index[1], index[2]];
    if (!inside && text.startsWith("--- ") && file) file.was = path(text.slice(4));
    if (!inside && text.startsWith("+++ ") && file) file.path = path(text.slice(4));
    const head = !inside && file && text.match(HEADS);
    if (head) {
      if (head[1]) file.what = head[1] === "rename from" ? `was ${head[2]}` : head[1] === "old mode" ? `mode ${head[2]}` : head[1].split(" ")[0] === "new" ? "new file" : "deleted";
    } else if (hunk && !inside) {
      [old, now] = [Number(hunk[1]), Number(hunk[3])];
      left = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
      rows.push({ text, kind: "hunk" });
    } else if (inside && text[0] === "+") {
      rows.push({ text, kind: "plus", file, line: now, side: 1 });
      now += 1;
      left[1] -= 1;
      file.plus += 1;
    } else if (inside && text[0] === "-") {
      rows.push({ text, kind: "minus", file, line: old, side: 0 });
      old += 1;
      left[0] -= 1;
      file.minus += 1;
    } else if (inside && text[0] !== "\\") {
      rows.push({ text, kind: "", file, line: now, side: 1 });
      old += 1;
      now += 1;
      left = [left[0] - 1, left[1] - 1];
    } else if (text) rows.push({ text, kind: "head" });
  }
  return rows;
}

const place = (row) => `${(row.side ? row.file.path : row.file.was) ?? "?"}:${row.line}`;

/** The message that says all comments. */
export function message(comments, rows) {
  const one = ([n, text]) => {
    const row = rows[n];
    const blob = row.file.blobs[row.side];
    const which = row.side ? "as it is now" : "as it was";
    return `${place(row)} (${which}${blob ? `, blob ${blob}` : ""})\n> ${row.text.slice(1)}\n${text.trim()}`;
  };
  return [...comments].sort(([a], [b]) => a - b).filter(([, text]) => text.trim()).map(one).join("\n\n");
}

function Comment({ text, label, onText, onClose }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    box.current.focus();
    return () => opener.focus();
  }, []);
  return html`<span class="comment"><label>${label} <textarea rows="2" ref=${box} value=${text} onInput=${(e) => onText(e.target.value)}
    onKeyDown=${(e) => e.key === "Escape" && onClose()}></textarea></label><button type="button" onClick=${onClose}>${text.trim() ? "Remove" : "Close"}</button></span>`;
}

/** A difference; with `send`, one that can be commented on. */
export function Diff({ ask, on, empty, send, more }) {
  const { value, error } = useAnswer(ask, on);
  const [comments, setComments] = useState(new Map());
  const [said, setSaid] = useState(null);
  const [refused, setRefused] = useState(null);
  const text = value ? value.diff : "";
  const rows = useMemo(() => parse(text), [text]);
  // Another difference has other lines.
  useEffect(() => setComments(new Map()), [text]);
  if (error) return html`<p>${error.message}</p>`;
  if (!value) return null;
  const set = (n, words) => setComments((was) => new Map(was).set(n, words));
  const drop = (n) => setComments((was) => { const next = new Map(was); next.delete(n); return next; });
  const keys = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || event.target.tagName === "TEXTAREA") return;
    const all = [...event.currentTarget.querySelectorAll("button.at")];
    const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(document.activeElement) + by))];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  const go = async () => {
    setRefused(null);
    try {
      setSaid(await send(message(comments, rows)));
      setComments(new Map());
    } catch (failed) {
      setRefused(failed);
    }
  };
  const written = [...comments.values()].filter((words) => words.trim()).length;
  const cut = value.truncated || text.split("\n", LINES_MAX + 1).length > LINES_MAX;
  return html`${value.said && html`<p class="told">${value.said}</p>`}
    ${!text && !value.said && html`<p>${empty}</p>`}
    ${text && send && html`<p class="dim">A line's number opens a comment on it.</p>`}
    ${text && html`<div class="diff" tabindex="0" role="region" aria-label="difference" onKeyDown=${keys}>${rows.map((row, n) => row.of ? html`<span key=${n} class="file"><b>${row.of.path && row.of.path !== "/dev/null" ? row.of.path : row.of.named}</b> ${row.of.what && html`<em class="dim">${row.of.what}</em> `}<em class="added">+${row.of.plus}</em> <em class="gone">−${row.of.minus}</em></span>` : html`<span key=${n} class=${row.kind}>${row.file && send
      ? html`<button type="button" class="at" tabindex="-1" aria-label=${`comment on ${place(row)}`} onClick=${() => set(n, comments.get(n) ?? "")}>${row.line}</button>`
      : row.file && html`<i class="at">${row.line}</i>`}<code>${row.text}</code>${"\n"}</span>
      ${comments.has(n) && html`<${Comment} key=${`c${n}`} text=${comments.get(n)} label=${place(row)} onText=${(words) => set(n, words)} onClose=${() => drop(n)} />`}`)}</div>`}
    ${cut && html`<p>There is more: <code>git aynig diff</code></p>`}
    ${send && comments.size > 0 && html`<p class="row"><button type="button" class="main" disabled=${!written} onClick=${go}>Send ${written === 0 ? "" : written === 1 ? "the comment " : `${written} comments `}as one message</button></p>`}
    ${said && html`<p role="status">${said}</p>`}<${Trouble} error=${refused} />`;
}
