// Small parts that every screen is made of. Text from a repository is only ever a text node.

import { html } from "./text.js";
import { Component, useCallback, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** So many seconds, in one unit. */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const [size, unit] = UNITS.find(([size]) => s >= size) || [1, "s"];
  return `${Math.floor(s / size)} ${unit}`;
}

/** The second that it is, again and again. */
export function useNow(every = 1000) {
  const [now, set] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => set(Date.now() / 1000), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** A moment, as how long ago it was; the exact one on hover. */
export function Ago({ at }) {
  const now = useNow(10000);
  if (at === null || at === undefined) return null;
  const date = new Date(at * 1000);
  // A commit may say any second; a date has an end.
  if (Number.isNaN(date.getTime())) return html`<span class="dim">at ${at} s</span>`;
  return html`<time datetime=${date.toISOString()} title=${date.toLocaleString()}>${span(now - at)} ago</time>`;
}

/** What is in it, or what failed there: one item that can't be shown takes no other with it. */
export class Apart extends Component {
  constructor() {
    super();
    this.state = { error: null };
  }
  componentDidCatch(error) {
    this.setState({ error });
  }
  render({ children }, { error }) {
    return error ? html`<p class="trouble" role="alert">This can't be shown: ${String(error.message || error)}</p>` : children;
  }
}

// What each standing is called; a colour never stands alone.
const WORDS = {
  leased: ["running", "run"],
  expired: ["lost its runner", "bad"],
  ready: ["ready", "go"],
  waits: ["waits", "wait"],
  "not-trusted": ["not trusted", "bad"],
  "left-out": ["left out", "wait"],
  unusable: ["command can't start", "bad"],
  "hop-limit": ["chain too long", "bad"],
  "invalid-state": ["invalid state", "bad"],
  "no-state": ["no state", "none"],
};

export const isStalled = (b) => b.state === "stalled";
export const isRunning = (b) => b.standing === "leased";
/** A node of a flow that has nothing to do: it waits for a message, not for a person. */
const rests = (b) => b.branch.startsWith("flow/") && b.state === "idle";
/** A person is wanted: nothing goes on by itself. */
export const needsPerson = (b) => (b.group === "waiting" || b.group === "stalled") && !rests(b);

export function Standing({ branch }) {
  const [word, kind] = isStalled(branch) ? ["stalled", "bad"] : branch.group === "done" ? ["done", "go"] : WORDS[branch.standing] || [branch.standing, "wait"];
  return html`<span class="standing ${kind}">${word}</span>`;
}

export const branchPath = (repo, name, tab) => `#/branch/${repo}/${encodeURIComponent(name)}${tab ? `/${tab}` : ""}`;

export function BranchName({ repo, name }) {
  return html`<a class="name" href=${branchPath(repo, name)}><bdi>${name}</bdi></a>`;
}

/** What the program writes where a person wrote nothing is not worth a line. */
export const subjectOf = (event) => (event.subject === `chore: set ${event.state}` || (event.state === "stalled" && event.why) ? "" : event.subject);

/** Nothing to show: what would be here, and the command that brings it. */
export function Empty({ title, children, commands = [] }) {
  return html`<div class="empty"><p class="title">${title}</p>${children}${commands.map(([what, command]) => html`<div key=${command} class="teach"><span>${what}</span><${Command} text=${command} /></div>`)}</div>`;
}

/** A command, to be copied. */
export function Command({ text }) {
  const [done, setDone] = useState(false);
  const copy = () => navigator.clipboard.writeText(text).then(() => setDone(true), () => {});
  return html`<span class="command"><code>${text}</code>${navigator.clipboard && html`<button type="button" class="quiet" aria-label=${`copy ${text}`} onClick=${copy}>${done ? "Copied" : "Copy"}</button>`}</span>`;
}

/** A text that is being written: it outlives the screen, a reload, and a server that is gone; this tab forgets it with the tab. */
export function useDraft(key) {
  const name = `aynig-draft ${key}`;
  const [text, set] = useState(() => sessionStorage.getItem(name) ?? "");
  const write = useCallback((words) => {
    set(words);
    if (words) sessionStorage.setItem(name, words);
    else sessionStorage.removeItem(name);
  }, [name]);
  return [text, write];
}

/** A failure, with the command that mends it. */
export function Trouble({ error, onClose }) {
  if (!error) return null;
  return html`<div class="trouble" role="alert">
    <p>${error.message}</p>
    ${error.hint && html`<p class="teach"><span>What helps:</span><${Command} text=${error.hint} /></p>`}
    ${onClose && html`<button type="button" onClick=${onClose}>Close</button>`}
  </div>`;
}

/** What became of an answer, and what has its branch go on where nothing does by itself. */
export function Said({ branch, choice, failed, of, onClose }) {
  return html`<div class="bar row wrap">${failed ? html`<span>Your answer to <bdi>${branch}</bdi> was not taken: ${failed.message}</span>`
    : html`<span>You answered <bdi>${branch}</bdi>: <b><bdi>${choice}</bdi></b>.</span>${of && of.standing === "ready" && html`<span class="teach"><span>It is ready. What starts it:</span><${Command} text="git aynig run" /></span>`}`}
    <button type="button" class="quiet" onClick=${onClose}>Close</button></div>`;
}

/** What opens and closes: `first` has the focus while it is open, and who opened it after that. */
export function useOpen() {
  const [open, setOpen] = useState(false);
  const [first, opener, was] = [useRef(null), useRef(null), useRef(false)];
  useLayoutEffect(() => {
    if (open) first.current.focus();
    else if (was.current) opener.current.focus();
    was.current = open;
  }, [open]);
  return { open, setOpen, first, opener };
}

/** A button that does something, is busy meanwhile, and says what failed. */
export function Act({ label, act, confirm, kind = "" }) {
  const [busy, setBusy] = useState(false);
  const [asked, setAsked] = useState(false);
  const [error, setError] = useState(null);
  const go = async () => {
    if (confirm && !asked) return setAsked(true);
    setBusy(true);
    setError(null);
    try {
      await act();
    } catch (failed) {
      setError(failed);
    }
    setAsked(false);
    setBusy(false);
  };
  return html`<span class="act">
    <button type="button" class=${asked ? "danger" : kind} disabled=${busy} onClick=${go}>${asked ? confirm : label}</button>
    ${asked && html`<button type="button" onClick=${() => setAsked(false)}>Leave it</button>`}
    <${Trouble} error=${error} onClose=${() => setError(null)} />
  </span>`;
}

/** A form that writes the branch's next state. */
export function NextState({ branch, act }) {
  const { open, setOpen, first, opener } = useOpen();
  const [state, setState] = useDraft(`state ${branch}`);
  const [message, setMessage] = useDraft(`why ${branch}`);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  if (!open) return html`<button type="button" ref=${opener} onClick=${() => setOpen(true)}>Set state…</button>`;
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await act({ state: state.trim(), message });
      setOpen(false);
      setState("");
      setMessage("");
    } catch (failed) {
      // What was typed stays.
      setError(failed);
    }
    setBusy(false);
  };
  return html`<form class="next" onSubmit=${send} onKeyDown=${(e) => e.key === "Escape" && setOpen(false)}>
    <label><span>State of <bdi>${branch}</bdi></span>
      <input name="state" required autocomplete="off" autocapitalize="none" spellcheck=${false} value=${state} list="states"
        ref=${first}
        onInput=${(e) => setState(e.target.value)} /></label>
    <p class="dim">The command of that name in <code>.aynig/command</code> goes on with it; where there is none, it waits.</p>
    <label>Message <textarea name="message" rows="3" value=${message} onInput=${(e) => setMessage(e.target.value)}></textarea></label>
    <div class="row"><button class="main" disabled=${busy}>Write it</button>
      <button type="button" onClick=${() => setOpen(false)}>Cancel</button></div>
    <${Trouble} error=${error} />
  </form>`;
}
