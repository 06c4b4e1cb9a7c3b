// One branch: its events, what its last run changed, what that printed.

import { html } from "./text.js";
import { useState } from "./vendor.js";
import { Ago, Standing, Trouble, branchPath, span, subjectOf } from "./parts.js";
import { Diff, useAnswer } from "./diff.js";
import { Log } from "./log.js";
import { Markdown } from "./markdown.js";
import { Question, Work, commenting } from "./say.js";
import { Verbs } from "./screens.js";
import * as wire from "./wire.js";

/** How an event's dot is coloured; its state says the same in words. */
const kindOf = (e) => (e.state === "stalled" ? "bad" : e.state === "working" ? "run" : e.run_id ? "go" : "none");

function Event({ event: e, repo, name, can, verb }) {
  const subject = subjectOf(e);
  const plain = (e.body ?? "").trim() === `This branch is in state ${e.state} now.`;
  return html`<li class=${kindOf(e)}>
    <p><b class="state">${e.state}</b> ${subject && html`<span class="subject">${subject}</span>`}</p>
    ${e.body && !plain && html`<${Markdown} text=${e.body} />`}
    <p class="dim meta">${e.origin_state && e.run_id && html`<span>came of <b class="state">${e.origin_state}</b>${e.seconds !== null && e.seconds !== undefined && html` after ${span(e.seconds)}`}</span>`}<${Ago} at=${e.committed} /><code title=${e.commit}>${e.commit.slice(0, 10)}</code></p>
    ${e.run_id && e.trigger && e.state !== "working" && html`<${Work} label="Show the work" ask=${() => wire.diff(repo, name, e.commit)} on=${[e.commit]} empty="This run changed no file." send=${can ? commenting(repo, name, verb) : null} />`}
  </li>`;
}

function Timeline({ repo, name, tick, can, verb }) {
  const [history, setHistory] = useState(false);
  const { value, error } = useAnswer(() => wire.events(repo, name, { history, n: 200 }), [repo, name, history, tick]);
  if (error) return html`<${Trouble} error=${error} />`;
  if (!value) return null;
  return html`<label class="check"><input type="checkbox" checked=${history} onChange=${(e) => setHistory(e.target.checked)} /> Leases and renewals too</label>
    ${value.length === 0 && html`<p>No state events yet.</p>`}
    <ol class="timeline">${value.map((e) => html`<${Event} key=${e.commit} event=${e} repo=${repo} name=${name} can=${can} verb=${verb} />`)}</ol>
    ${value.length === 200 && html`<p class="dim">Older ones: <code>git aynig events</code></p>`}`;
}

function Changes({ repo, name, tick, can, verb }) {
  return html`<${Diff} ask=${() => wire.diff(repo, name)} on=${[repo, name, tick]} empty="Its last run changed no file." send=${can ? commenting(repo, name, verb) : null} />`;
}

const TABS = [["events", "Events", Timeline], ["diff", "Changes", Changes], ["log", "Log", Log]];

export function Branch({ repo, name, tab: asked, branch, questions, tick, logTick, can, verb }) {
  const tab = TABS.some(([id]) => id === asked) ? asked : "events";
  const setTab = (id) => (location.hash = branchPath(repo, name, id));
  const Shown = TABS.find(([id]) => id === tab)[2];
  const keys = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = TABS[(TABS.findIndex(([id]) => id === tab) + by + TABS.length) % TABS.length][0];
    setTab(next);
    document.getElementById(`tab-${next}`).focus();
  };
  const subject = branch && subjectOf(branch);
  return html`<header class="about"><div class="heading"><h2 tabindex="-1"><bdi>${name}</bdi></h2>${branch && html`<${Standing} branch=${branch} /><${Ago} at=${branch.committed} />`}</div>
      ${branch ? html`<p><b class="state">${branch.state === "working" || branch.state === "stalled" ? branch.origin_state : branch.state}</b> ${subject && html`<span class="subject">${subject}</span>`} ${branch.why && html`<span class="why">${branch.why}</span>`}</p>
        <${Verbs} branch=${branch} repo=${repo} can=${can} verb=${verb} whole />` : html`<p class="dim">Its head is no state event.</p>`}
    </header>
    ${questions.filter((q) => q.branch === name).map((q) => html`<${Question} key=${q.id} question=${q} repo=${repo} can=${can} verb=${verb} />`)}
    <div role="tablist" aria-label="about this branch" onKeyDown=${keys}>${TABS.map(([id, label]) => html`<button type="button" role="tab" key=${id} id=${`tab-${id}`}
      aria-selected=${tab === id ? "true" : "false"} aria-controls="panel" tabindex=${tab === id ? 0 : -1} onClick=${() => setTab(id)}>${label}</button>`)}</div>
    <section id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
      <${Shown} key=${`${repo} ${name} ${tab}`} repo=${repo} name=${name} tick=${tick} logTick=${logTick} ended=${branch && branch.standing !== "leased"} can=${can} verb=${verb} /></section>`;
}
