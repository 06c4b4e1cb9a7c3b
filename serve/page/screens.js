// The screens that list branches: what needs a person, what runs, all of them.

import { html, useEffect, useRef, useState } from "./vendor.js";
import { Act, Ago, BranchName, NextState, Standing, isRunning, isStalled, needsPerson, span, useNow } from "./parts.js";
import { Question, Say } from "./say.js";

const Empty = ({ children }) => html`<div class="empty">${children}</div>`;

/** What a person may do about a branch; on its own screen all of it. */
export function Verbs({ branch, repo, can, verb, whole = false }) {
  if (!can) return null;
  const act = (name, body) => () => verb(repo, branch.branch, name, body);
  return html`<div class="verbs">
    ${isStalled(branch) && html`<${Act} label="Retry" kind="main" act=${act("retry", {})} />`}
    ${isRunning(branch) && html`<${Act} label="Cancel" confirm="Take its lease away" act=${act("cancel", {})} />`}
    ${!isRunning(branch) && html`<${NextState} branch=${branch.branch} act=${(body) => act("set-state", body)()} />`}
    <${Say} branch=${branch} repo=${repo} verb=${verb} />
    ${whole && html`<${Act} label="Pause it" confirm="Start nothing on it" act=${act("pause", {})} />`}
  </div>`;
}

/** Asks the browser for leave to tell what waits. */
function Notify() {
  const [leave, setLeave] = useState(window.Notification ? Notification.permission : "denied");
  if (leave !== "default") return null;
  return html`<p class="after"><button type="button" onClick=${async () => setLeave(await Notification.requestPermission())}>Notify me when something waits</button></p>`;
}

const Why = ({ branch }) => branch.why && html`<p class="why">${branch.why}</p>`;

/** The branches that wait for a person otherwise than by a question. */
export const waitingBranches = (branches, questions) => {
  const asking = new Set(questions.map((q) => q.branch));
  return branches.filter((b) => needsPerson(b) && !asking.has(b.branch));
};

export function Needs({ branches, questions, ...rest }) {
  const waiting = waitingBranches(branches, questions).sort((a, b) => isStalled(b) - isStalled(a) || (a.committed ?? 0) - (b.committed ?? 0));
  if (!waiting.length && !questions.length) {
    return html`<${Empty}><p>Nothing waits for you.</p>
      <p>A branch comes here when it asks something, is stalled, or is in a state that no command answers. Begin one:
      <code>git aynig set-state build -b job</code></p><${Notify} /><//>`;
  }
  return html`<ul class="cards">${questions.map((q) => html`<li key=${q.id}><${Question} question=${q} repo=${rest.repo} can=${rest.can} verb=${rest.verb} /></li>`)}${waiting.map((b) => html`<li key=${b.branch}>
    <article aria-label=${b.branch}>
      <h3><${BranchName} repo=${rest.repo} name=${b.branch} /> <${Standing} branch=${b} /></h3>
      <p><b class="state">${b.state}</b> <span class="subject">${b.subject}</span></p>
      <${Why} branch=${b} />
      <p class="dim"><${Ago} at=${b.committed} /></p>
      <${Verbs} branch=${b} ...${rest} />
    </article></li>`)}</ul><${Notify} />`;
}

function Elapsed({ since }) {
  const now = useNow();
  return since === null || since === undefined ? null : html`<span title=${new Date(since * 1000).toLocaleString()}>${span(now - since)}</span>`;
}

export function Running({ branches, ...rest }) {
  const running = branches.filter(isRunning);
  if (!running.length) {
    return html`<${Empty}><p>Nothing runs.</p><p>What is ready starts with <code>git aynig tick</code>, or by itself after
      <code>git aynig hooks install</code>.</p><//>`;
  }
  return html`<ul class="cards">${running.map((b) => html`<li key=${b.branch}>
    <article aria-label=${b.branch}>
      <h3><${BranchName} repo=${rest.repo} name=${b.branch} /> <${Standing} branch=${b} /></h3>
      <p><b class="state">${b.origin_state}</b> for <${Elapsed} since=${b.began} /></p>
      ${b.progress && html`<p>${b.progress.text}</p>`}
      ${b.progress && b.progress.ratio !== null &&
        html`<progress max="1" value=${b.progress.ratio} aria-label="how far it is"></progress>`}
      ${b.last_line && html`<pre class="last" aria-label="last line">${b.last_line}</pre>`}
      <${Verbs} branch=${b} ...${rest} />
    </article></li>`)}</ul>`;
}

const ROW = 44;

/** All branches: those that are in sight are there, whatever their number. */
export function Branches({ branches, repo }) {
  const [search, setSearch] = useState("");
  const [group, setGroup] = useState("");
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const box = useRef(null);
  useEffect(() => {
    const measure = () => box.current && setHeight(box.current.clientHeight);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  const states = new Map();
  for (const b of branches) states.set(b.state ?? "", (states.get(b.state ?? "") || 0) + 1);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = branches.filter((b) => (!group || b.state === group) && words.every((w) => `${b.branch} ${b.state} ${b.subject}`.toLowerCase().includes(w)));
  const first = Math.max(0, Math.floor(top / ROW) - 10);
  const shown = found.slice(first, first + Math.ceil(height / ROW) + 20);
  if (!branches.length) {
    return html`<${Empty}><p>No branch has a state yet.</p><p>The first one: <code>git aynig set-state build -b job</code>, after
      <code>git aynig init</code>.</p><//>`;
  }
  return html`<div class="tools">
      <label>Search <input type="search" name="search" value=${search} onInput=${(e) => setSearch(e.target.value)} /></label>
      <label>State <select name="group" value=${group} onChange=${(e) => setGroup(e.target.value)}>
        <option value="">all (${branches.length})</option>
        ${[...states].sort().map(([state, n]) => html`<option key=${state} value=${state}>${state} (${n})</option>`)}
      </select></label>
      <span role="status">${found.length} of ${branches.length}</span>
    </div>
    <div class="list" role="list" tabindex="0" aria-label="branches" ref=${box} onScroll=${(e) => setTop(e.target.scrollTop)}>
      <div style=${{ height: `${found.length * ROW}px` }}>
        ${shown.map((b, n) => html`<div role="listitem" class="line" key=${b.branch} style=${{ top: `${(first + n) * ROW}px` }}>
          <${BranchName} repo=${repo} name=${b.branch} /><b class="state">${b.state}</b><${Standing} branch=${b} />
          <span class="subject dim">${b.subject}</span><span class="dim when"><${Ago} at=${b.committed} /></span>
        </div>`)}
      </div>
    </div>`;
}
