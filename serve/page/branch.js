// One branch: its events, what its last run changed, what that printed.

import { html, useEffect, useRef, useState } from "./vendor.js";
import { Ago, Standing, Trouble, span } from "./parts.js";
import { Verbs } from "./screens.js";
import * as wire from "./wire.js";

/** Asks again whenever `on` changes; the answer before stays until the next is there. */
function useAnswer(ask, on) {
  const [answer, set] = useState({ value: null, error: null });
  useEffect(() => {
    let gone = false;
    ask().then((value) => gone || set({ value, error: null }), (error) => gone || set({ value: null, error }));
    return () => (gone = true);
  }, on);
  return answer;
}

function Timeline({ repo, name, tick }) {
  const [history, setHistory] = useState(false);
  const { value, error } = useAnswer(() => wire.events(repo, name, { history, n: 200 }), [repo, name, history, tick]);
  if (error) return html`<${Trouble} error=${error} />`;
  if (!value) return null;
  return html`<label class="check"><input type="checkbox" checked=${history} onChange=${(e) => setHistory(e.target.checked)} /> leases and renewals too</label>
    ${value.length === 0 && html`<p>No state events yet.</p>`}
    <ol class="timeline">${value.map((e) => html`<li key=${e.commit}>
      <p><b class="state">${e.state}</b> <span class="subject">${e.subject}</span></p>
      ${e.body && html`<pre class="text">${e.body}</pre>`}
      <p class="dim"><code title=${e.commit}>${e.commit.slice(0, 10)}</code> <${Ago} at=${e.committed} />${e.seconds !== null && e.seconds !== undefined && html` after ${span(e.seconds)}`}</p>
    </li>`)}</ol>
    ${value.length === 200 && html`<p class="dim">Older ones: <code>git aynig events</code></p>`}`;
}

const kind = (line) => (/^(\+\+\+|---|diff |index |rename |similarity |new file|deleted file)/.test(line) ? "head" : { "+": "plus", "-": "minus", "@": "hunk" }[line[0]] || "");

const LINES_MAX = 5000;

function Diff({ repo, name, tick }) {
  const { value, error } = useAnswer(() => wire.diff(repo, name), [repo, name, tick]);
  if (error) return html`<p>${error.message}</p>`;
  if (!value) return null;
  const lines = value.diff.split("\n");
  return html`${value.said && html`<p class="said">${value.said}</p>`}
    ${!value.diff && !value.said && html`<p>Its last run changed no file.</p>`}
    ${value.diff && html`<pre class="diff" tabindex="0" aria-label="difference">${lines.slice(0, LINES_MAX).map((line, n) => html`<span key=${n} class=${kind(line)}>${line}${"\n"}</span>`)}</pre>`}
    ${(value.truncated || lines.length > LINES_MAX) && html`<p>There is more: <code>git aynig diff</code></p>`}`;
}

const PIECE = 65536;
const KEPT = 400000;

const fresh = () => ({ text: "", name: null, next: null, cut: false, decoder: new TextDecoder() });

function Log({ repo, name, tick, logTick }) {
  const [stream, setStream] = useState("stdout");
  const [shown, setShown] = useState({ ...fresh(), error: null });
  const box = useRef(null);
  const follow = useRef(true);
  const state = useRef(null);
  useEffect(() => {
    state.current = null;
    setShown({ ...fresh(), error: null });
  }, [repo, name, stream]);
  useEffect(() => {
    let gone = false;
    (async () => {
      let have = state.current || fresh();
      for (;;) {
        const piece = await wire.log(repo, name, { stream, limit: PIECE, offset: have.next ?? -PIECE });
        if (gone) return;
        if (have.next !== null && (have.name !== piece.name || piece.size < have.next)) {
          // Another run's: from its end.
          have = fresh();
          continue;
        }
        if (have.next === null) have = { ...have, name: piece.name, cut: piece.from > 0 };
        let text = have.text + have.decoder.decode(piece.bytes, { stream: true });
        if (text.length > KEPT) {
          text = text.slice(-KEPT / 2);
          have.cut = true;
        }
        have = { ...have, text, next: piece.from + piece.bytes.length };
        state.current = have;
        setShown({ ...have, error: null });
        if (have.next >= piece.size) return;
      }
    })().catch((error) => gone || setShown((was) => ({ ...was, error })));
    return () => (gone = true);
  }, [repo, name, stream, tick, logTick]);
  useEffect(() => {
    if (box.current && follow.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown.text]);
  const scrolled = (e) => (follow.current = e.target.scrollTop + e.target.clientHeight >= e.target.scrollHeight - 20);
  return html`<label>Which <select name="stream" value=${stream} onChange=${(e) => setStream(e.target.value)}>
      <option value="stdout">what it printed</option><option value="stderr">what it complained about</option><option value="events">what it reported</option></select></label>
    ${shown.error ? html`<p>${shown.error.message}</p>` : html`
      ${shown.cut && html`<p class="dim">The end of it; all: <code>git aynig logs</code></p>`}
      <pre class="log" tabindex="0" aria-label="log" ref=${box} onScroll=${scrolled}>${shown.text || (shown.name ? "nothing yet" : "")}</pre>`}`;
}

const TABS = [["events", "Events", Timeline], ["diff", "Changes", Diff], ["log", "Log", Log]];

export function Branch({ repo, name, branch, tick, logTick, can, verb }) {
  const [tab, setTab] = useState("events");
  const Shown = TABS.find(([id]) => id === tab)[2];
  const keys = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = TABS[(TABS.findIndex(([id]) => id === tab) + by + TABS.length) % TABS.length][0];
    setTab(next);
    document.getElementById(`tab-${next}`).focus();
  };
  return html`<header class="about"><h2 tabindex="-1"><bdi>${name}</bdi> ${branch && html`<${Standing} branch=${branch} />`}</h2>
      ${branch ? html`<p><b class="state">${branch.state}</b> <span class="subject">${branch.subject}</span></p>
        ${branch.why && html`<p class="why">${branch.why}</p>`}
        <${Verbs} branch=${branch} repo=${repo} can=${can} verb=${verb} />` : html`<p class="dim">Its head is no state event.</p>`}
    </header>
    <div role="tablist" aria-label="about this branch" onKeyDown=${keys}>${TABS.map(([id, label]) => html`<button type="button" role="tab" key=${id} id=${`tab-${id}`}
      aria-selected=${tab === id ? "true" : "false"} aria-controls="panel" tabindex=${tab === id ? 0 : -1} onClick=${() => setTab(id)}>${label}</button>`)}</div>
    <section id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
      <${Shown} key=${`${repo} ${name} ${tab}`} repo=${repo} name=${name} tick=${tick} logTick=${logTick} /></section>`;
}
