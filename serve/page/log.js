// A log of any length: its bytes are kept as they came, the lines in sight are rendered.
//
// A million lines are bytes and the places where lines begin; text is made of what is looked at, and nothing else.

import { html } from "./text.js";
import { useEffect, useRef, useState } from "./vendor.js";
import * as wire from "./wire.js";

const PIECE = 1 << 20;
/** Most that is kept; of a longer log its end. */
const KEPT = 96 << 20;
const ROW = 20;
/** A browser has no element higher than this: beyond it the bar's place is a share of the log. */
const HIGHEST = 15000000;
const LINE_MAX = 4000;

/** What is known of a log. */
export class Lines {
  constructor() {
    this.bytes = new Uint8Array(PIECE);
    this.length = 0;
    this.starts = new Uint32Array(1 << 14);
    this.count = 0;
    this.open = false;
  }

  add(more) {
    if (this.length + more.length > this.bytes.length) {
      const larger = new Uint8Array(Math.max(this.length + more.length, this.bytes.length * 2));
      larger.set(this.bytes.subarray(0, this.length));
      this.bytes = larger;
    }
    this.bytes.set(more, this.length);
    for (let at = 0; at < more.length; at += 1) {
      if (!this.open) {
        if (this.count === this.starts.length) {
          const larger = new Uint32Array(this.count * 2);
          larger.set(this.starts);
          this.starts = larger;
        }
        this.starts[this.count] = this.length + at;
        this.count += 1;
      }
      this.open = more[at] !== 10;
    }
    this.length += more.length;
  }

  line(n) {
    const from = this.starts[n];
    const to = n + 1 < this.count ? this.starts[n + 1] : this.length;
    const cut = to - from > LINE_MAX;
    // A program's colours are no text.
    const text = new TextDecoder().decode(this.bytes.subarray(from, cut ? from + LINE_MAX : to));
    return text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "").replace(/\r?\n$/, "") + (cut ? " …" : "");
  }
}

const fresh = () => ({ name: null, next: null, from: 0, lines: new Lines() });

/** The lines in sight of a log that may grow. */
export function Log({ repo, name, tick, logTick, low = false, ended = false }) {
  const [stream, setStream] = useState("stdout");
  const [, render] = useState(0);
  // Who fails mostly says so on standard error: where nothing was printed, that is shown, until another one is chosen.
  const chosen = useRef(!ended);
  const [error, setError] = useState(null);
  const [follow, setFollow] = useState(true);
  const box = useRef(null);
  const state = useRef(fresh());
  const frame = useRef(0);
  const show = () => {
    if (!frame.current) frame.current = requestAnimationFrame(() => { frame.current = 0; render((n) => n + 1); });
  };
  useEffect(() => {
    state.current = fresh();
    setError(null);
    show();
  }, [repo, name, stream]);
  useEffect(() => {
    let gone = false;
    (async () => {
      for (;;) {
        let have = state.current;
        if (have.next === null) {
          const end = await wire.log(repo, name, { stream, limit: 0, offset: 0 });
          have = { ...have, name: end.name, from: Math.max(0, end.size - KEPT), next: Math.max(0, end.size - KEPT) };
        }
        const piece = await wire.log(repo, name, { stream, limit: PIECE, offset: have.next });
        if (gone) return;
        if (have.name !== piece.name || piece.size < have.next) {
          // Another run's: from its beginning.
          state.current = fresh();
          continue;
        }
        have.lines.add(piece.bytes);
        state.current = { ...have, next: piece.from + piece.bytes.length };
        setError(null);
        show();
        if (!piece.size && !chosen.current) setStream("stderr");
        chosen.current = true;
        if (!piece.bytes.length || state.current.next >= piece.size) return;
      }
    })().catch((failed) => gone || setError(failed));
    return () => (gone = true);
  }, [repo, name, stream, tick, logTick]);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);

  const { lines, from, name: log } = state.current;
  const count = lines.count;
  const view = box.current;
  const inSight = Math.ceil((view ? view.clientHeight : 600) / ROW);
  const high = Math.min(HIGHEST, count * ROW);
  useEffect(() => {
    if (box.current && follow) box.current.scrollTop = box.current.scrollHeight;
  });
  const share = view && view.scrollHeight > view.clientHeight ? view.scrollTop / (view.scrollHeight - view.clientHeight) : 0;
  const last = Math.max(0, count - inSight);
  const top = follow ? last : count * ROW <= HIGHEST && view ? Math.floor(view.scrollTop / ROW) : Math.round(share * last);
  const first = Math.max(0, Math.min(top, last) - 5);
  const shown = [];
  for (let n = first; n < Math.min(count, first + inSight + 10); n += 1) shown.push([n, lines.line(n)]);
  // Lines stand where the window is, however far the bar's scale is from theirs.
  const at = count * ROW <= HIGHEST ? first * ROW : Math.min(high - shown.length * ROW, Math.max(0, (view ? (follow ? high : view.scrollTop) : 0) - (Math.min(top, last) - first) * ROW));
  const scrolled = (e) => {
    setFollow(e.target.scrollTop + e.target.clientHeight >= e.target.scrollHeight - ROW);
    show();
  };
  return html`<div class="tools"><label>Shown <select name="stream" value=${stream} onChange=${(e) => { chosen.current = true; setStream(e.target.value); }}>
      <option value="stdout">what it printed (stdout)</option><option value="stderr">what it complained about (stderr)</option><option value="events">what it reported (AYNIG_EVENTS)</option></select></label>
      <label class="check"><input type="checkbox" name="follow" checked=${follow} onChange=${(e) => { setFollow(e.target.checked); show(); }} /> Follow its end</label>
      <span class="dim">${count.toLocaleString()} lines</span></div>
    ${error ? html`<p>${error.message}</p>` : html`
      ${from > 0 && html`<p class="dim">The end of it; all: <code>git aynig logs</code></p>`}
      <div class=${low ? "log low" : "log"} tabindex="0" role="region" aria-label="log" ref=${box} onScroll=${scrolled}>
        ${count === 0 ? html`<p class="dim">${log ? ended ? "Nothing." : "Nothing yet." : ""}</p>` : html`<div class="all" style=${{ height: `${high}px` }}>
          <pre style=${{ top: `${Math.max(0, at)}px` }}>${shown.map(([n, text]) => html`<span key=${n} data-line=${n}>${text}${"\n"}</span>`)}</pre></div>`}
      </div>`}`;
}
