// The screens that list branches: what needs a person, what runs, all of them.

import { html } from "./text.js";
import { useEffect, useMemo, useRef, useState } from "./vendor.js";
import { Act, Ago, Apart, BranchName, Empty, NextState, Standing, branchPath, isRunning, isStalled, needsPerson, span, subjectOf, useNow } from "./parts.js";
import { Log } from "./log.js";
import { Approval } from "./node.js";
import { Question, Say, Work, commenting } from "./say.js";
import * as wire from "./wire.js";

/** What a person may do about a branch; on its own screen all of it. */
export function Verbs({ branch, repo, can, verb, whole = false }) {
  if (!can) return null;
  const act = (name, body) => () => verb(repo, branch.branch, name, body);
  return html`<div class="verbs">
    ${isStalled(branch) && html`<${Act} label="Retry" kind="main" act=${act("retry", {})} />`}
    ${isRunning(branch) && html`<${Act} label="Cancel" confirm="End its run" act=${act("cancel", {})} />`}
    ${!isRunning(branch) && html`<${NextState} branch=${branch.branch} act=${(body) => act("set-state", body)()} />`}
    <${Say} branch=${branch} repo=${repo} verb=${verb} />
    ${whole && html`<${Act} label="Pause it" confirm="Start nothing on it" act=${act("pause", {})} />`}
  </div>`;
}

/** Asks the browser for leave to tell what waits. */
function Notify() {
  const [leave, setLeave] = useState(window.Notification ? Notification.permission : "denied");
  if (leave !== "default") return null;
  return html`<p class="after"><button type="button" class="quiet" onClick=${async () => setLeave(await Notification.requestPermission())}>Notify me when something waits</button></p>`;
}

const Why = ({ branch }) => branch.why && html`<p class="why">${branch.why}</p>`;

/** The branches that wait for a person otherwise than by a question. */
export const waitingBranches = (branches, questions) => {
  const asking = new Set(questions.map((q) => q.branch));
  return branches.filter((b) => needsPerson(b) && !asking.has(b.branch));
};

/** Calls of flows' nodes that wait, by the id of their question. */
export function useApprovals(questions) {
  const [known, setKnown] = useState(null);
  const ids = questions.filter((q) => q.branch.startsWith("flow/")).map((q) => q.id).join(" ");
  useEffect(() => {
    let gone = false;
    if (!ids) return;
    wire.call("GET", "/api/approvals").then(({ approvals }) => gone || setKnown(new Map(approvals.map((one) => [one.approval.approvalId, one]))), () => gone || setKnown(new Map()));
    return () => (gone = true);
  }, [ids]);
  // Until they are known it is not said that they are plain questions.
  return ids && !known ? null : known ?? new Map();
}

function Waiting({ branch, repo, can, verb }) {
  const subject = subjectOf(branch);
  const ran = branch.run_id || branch.trigger;
  return html`<article aria-label=${branch.branch}>
    <header><h3><${BranchName} repo=${repo} name=${branch.branch} /></h3><${Standing} branch=${branch} /><${Ago} at=${branch.committed} /></header>
    <p>${isStalled(branch) ? html`<b class="state">${branch.origin_state}</b> <span class="why">${branch.why ?? "stalled"}</span>`
      : html`<b class="state">${branch.state}</b> ${subject ? html`<span class="subject">${subject}</span>` : html`<span class="dim">is for you: no command answers this state</span>`}`}</p>
    ${!isStalled(branch) && html`<${Why} branch=${branch} />`}
    ${ran && html`<div class="row wrap"><${Work} label="Show the work" ask=${() => wire.diff(repo, branch.branch)} on=${[branch.commit]} empty="Its last run changed no file." send=${can ? commenting(repo, branch.branch, verb) : null} />
      <a class="quiet" href=${branchPath(repo, branch.branch, "log")}>What it printed</a></div>`}
    <${Verbs} branch=${branch} repo=${repo} can=${can} verb=${verb} />
  </article>`;
}

/** So many cards are there at once: a page of thousands is none that is read. */
const CARDS = 40;

export function Needs({ branches, questions, ...rest }) {
  const [most, setMost] = useState(CARDS);
  const approvals = useApprovals(questions);
  const waiting = waitingBranches(branches, questions).sort((a, b) => isStalled(b) - isStalled(a) || (a.committed ?? 0) - (b.committed ?? 0));
  if (!waiting.length && !questions.length) {
    return html`<${Empty} title="Nothing waits for you." commands=${branches.length ? [["Begin another:", "git aynig set-state build -b job"]] : [["What states mean here:", "git aynig init"], ["Then begin a branch:", "git aynig set-state build -b job"]]}>
      <p>A branch comes here when it asks something, is stalled, or is in a state that no command answers.</p><${Notify} /><//>`;
  }
  const asked = (q) => {
    const call = approvals?.get(q.id);
    return call ? html`<${Approval} approval=${{ ...call.approval, id: q.id, asked: q.asked }} from=${html`<a class="name" href=${`#/flow/${call.runId}/${call.approval.nodeId}`}><bdi>${q.branch}</bdi></a>`} can=${rest.can} onDone=${rest.reread} />`
      : html`<${Question} question=${q} repo=${rest.repo} can=${rest.can} verb=${rest.verb} />`;
  };
  const asking = questions.filter((q) => approvals || !q.branch.startsWith("flow/"));
  const more = asking.length + waiting.length - most;
  return html`<ul class="cards">${asking.slice(0, most).map((q) => html`<li key=${q.id}><${Apart}>${asked(q)}</${Apart}></li>`)}${waiting.slice(0, Math.max(0, most - asking.length)).map((b) => html`<li key=${b.branch}><${Apart}><${Waiting} branch=${b} ...${rest} /></${Apart}></li>`)}</ul>
    ${more > 0 && html`<p><button type="button" onClick=${() => setMost(most + CARDS)}>Show more</button> <span class="dim">${more.toLocaleString()} wait besides; <a href="#/branches">Branches</a> has all of them.</span></p>`}<${Notify} />`;
}

function Elapsed({ since }) {
  const now = useNow();
  return since === null || since === undefined ? null : html`<span title=${new Date(since * 1000).toLocaleString()}>${span(now - since)}</span>`;
}

function Run({ branch, logTick, tick, ...rest }) {
  const [open, setOpen] = useState(false);
  const { progress } = branch;
  return html`<article aria-label=${branch.branch}>
    <header><h3><${BranchName} repo=${rest.repo} name=${branch.branch} /></h3><${Standing} branch=${branch} /><span class="time">for <${Elapsed} since=${branch.began} /></span></header>
    <p><b class="state">${branch.origin_state}</b> ${progress ? html`<span class="subject">${progress.text}</span>${progress.ratio !== null && html` <span class="dim">${Math.round(progress.ratio * 100)} %</span>`}` : ""}</p>
    ${progress && progress.ratio !== null && html`<progress max="1" value=${progress.ratio} aria-label="how far it is"></progress>`}
    ${!open && branch.last_line && html`<pre class="last" aria-label="last line">${branch.last_line}</pre>`}
    <div class="work"><button type="button" class="quiet" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>${open ? "Hide what it prints" : "Show what it prints"}</button></div>
    ${open && html`<${Log} repo=${rest.repo} name=${branch.branch} tick=${tick} logTick=${logTick} low />`}
    <${Verbs} branch=${branch} ...${rest} />
  </article>`;
}

export function Running({ branches, ...rest }) {
  const running = branches.filter(isRunning);
  const ready = branches.filter((b) => b.standing === "ready").length;
  if (!running.length) {
    return html`<${Empty} title="Nothing runs." commands=${[[ready ? `Start what is ready (${ready}):` : "Start what is ready:", "git aynig run"], ["Let it start by itself:", "git aynig hooks install"]]} />`;
  }
  return html`<ul class="cards">${running.map((b) => html`<li key=${b.branch}><${Apart}><${Run} branch=${b} ...${rest} /></${Apart}></li>`)}</ul>`;
}

const ROW = 40;
const GROUPS = [["needs", "Need you"], ["leased", "Running"], ["ready", "Ready"], ["rest", "Others"], ["done", "Done"]];
const groupOf = (b) => (needsPerson(b) ? "needs" : isRunning(b) ? "leased" : b.group === "done" ? "done" : b.standing === "ready" ? "ready" : "rest");

/** The rows of the list: branches, below the name of their group where they are grouped. */
function rowsOf(found, by) {
  if (!by) return found;
  const groups = new Map(by === "standing" ? GROUPS.map(([id]) => [id, []]) : []);
  for (const b of found) {
    const id = by === "standing" ? groupOf(b) : b.state ?? "no state";
    if (!groups.has(id)) groups.set(id, []);
    groups.get(id).push(b);
  }
  const named = [...groups].filter(([, of]) => of.length);
  if (by === "state") named.sort(([a], [b]) => (a < b ? -1 : 1));
  return named.flatMap(([id, of]) => [{ title: GROUPS.find(([known]) => known === id && by === "standing")?.[1] ?? id, count: of.length }, ...of]);
}

/** All branches: those that are in sight are there, whatever their number. */
export function Branches({ branches, repo }) {
  const [search, setSearch] = useState("");
  const [only, setOnly] = useState("");
  const [by, setBy] = useState("standing");
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const box = useRef(null);
  useEffect(() => {
    const measure = () => box.current && setHeight(box.current.clientHeight);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  const states = useMemo(() => {
    const count = new Map();
    for (const b of branches) count.set(b.state ?? "", (count.get(b.state ?? "") || 0) + 1);
    return [...count].sort();
  }, [branches]);
  const [found, rows] = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const found = branches.filter((b) => (!only || b.state === only) && words.every((w) => `${b.branch} ${b.state} ${b.subject}`.toLowerCase().includes(w)));
    return [found, rowsOf(found, by)];
  }, [branches, search, only, by]);
  if (!branches.length) {
    return html`<${Empty} title="No branch has a state yet." commands=${[["What states mean here:", "git aynig init"], ["Then begin a branch:", "git aynig set-state build -b job"]]} />`;
  }
  const first = Math.max(0, Math.floor(top / ROW) - 10);
  const shown = rows.slice(first, first + Math.ceil(height / ROW) + 20);
  const row = (b, n) => b.title !== undefined
    ? html`<div role="listitem" class="line group" key=${`group ${b.title}`} style=${{ top: `${(first + n) * ROW}px` }}><b>${b.title}</b><span class="count">${b.count.toLocaleString()}</span></div>`
    : html`<div role="listitem" class="line" key=${b.branch} style=${{ top: `${(first + n) * ROW}px` }}>
      <${BranchName} repo=${repo} name=${b.branch} /><b class="state">${((isStalled(b) || isRunning(b)) && b.origin_state) || b.state}</b><${Standing} branch=${b} />
      <span class="subject dim">${subjectOf(b)}</span><span class="dim when"><${Ago} at=${b.committed} /></span></div>`;
  return html`<div class="tools">
      <label>Search <input type="search" name="search" value=${search} onInput=${(e) => setSearch(e.target.value)} /></label>
      <label>State <select name="group" value=${only} onChange=${(e) => setOnly(e.target.value)}>
        <option value="">all (${branches.length})</option>
        ${states.map(([state, n]) => html`<option key=${state} value=${state}>${state} (${n})</option>`)}
      </select></label>
      <label>Group by <select name="by" value=${by} onChange=${(e) => setBy(e.target.value)}><option value="standing">what is due</option><option value="state">state</option><option value="">nothing</option></select></label>
      <span role="status" class="dim">${found.length.toLocaleString()} of ${branches.length.toLocaleString()}</span>
    </div>
    <div class="list" role="list" tabindex="0" aria-label="branches" ref=${box} onScroll=${(e) => setTop(e.target.scrollTop)}>
      <div role="presentation" style=${{ height: `${rows.length * ROW}px` }}>${shown.map(row)}</div>
    </div>`;
}
