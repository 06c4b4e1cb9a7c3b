// One branch: its events, what its last run changed, what that printed.

import { html, useState } from "./vendor.js";
import { Ago, Standing, Trouble, span } from "./parts.js";
import { Diff, useAnswer } from "./diff.js";
import { Log } from "./log.js";
import { Markdown } from "./markdown.js";
import { Question } from "./say.js";
import { Verbs } from "./screens.js";
import * as wire from "./wire.js";

function Timeline({ repo, name, tick }) {
  const [history, setHistory] = useState(false);
  const { value, error } = useAnswer(() => wire.events(repo, name, { history, n: 200 }), [repo, name, history, tick]);
  if (error) return html`<${Trouble} error=${error} />`;
  if (!value) return null;
  return html`<label class="check"><input type="checkbox" checked=${history} onChange=${(e) => setHistory(e.target.checked)} /> leases and renewals too</label>
    ${value.length === 0 && html`<p>No state events yet.</p>`}
    <ol class="timeline">${value.map((e) => html`<li key=${e.commit}>
      <p><b class="state">${e.state}</b> <span class="subject">${e.subject}</span></p>
      ${e.body && html`<${Markdown} text=${e.body} />`}
      <p class="dim"><code title=${e.commit}>${e.commit.slice(0, 10)}</code> <${Ago} at=${e.committed} />${e.seconds !== null && e.seconds !== undefined && html` after ${span(e.seconds)}`}</p>
    </li>`)}</ol>
    ${value.length === 200 && html`<p class="dim">Older ones: <code>git aynig events</code></p>`}`;
}

function Changes({ repo, name, tick, can, verb }) {
  const send = async (text) => {
    const sent = await verb(repo, name, "send", { text });
    return sent.waiting ? "Sent. They wait until the branch takes messages in." : "Sent, and heard.";
  };
  return html`<${Diff} ask=${() => wire.diff(repo, name)} on=${[repo, name, tick]} empty="Its last run changed no file." send=${can ? send : null} />`;
}

const TABS = [["events", "Events", Timeline], ["diff", "Changes", Changes], ["log", "Log", Log]];

export function Branch({ repo, name, branch, questions, tick, logTick, can, verb }) {
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
        <${Verbs} branch=${branch} repo=${repo} can=${can} verb=${verb} whole />` : html`<p class="dim">Its head is no state event.</p>`}
    </header>
    ${questions.filter((q) => q.branch === name).map((q) => html`<${Question} key=${q.id} question=${q} repo=${repo} can=${can} verb=${verb} />`)}
    <div role="tablist" aria-label="about this branch" onKeyDown=${keys}>${TABS.map(([id, label]) => html`<button type="button" role="tab" key=${id} id=${`tab-${id}`}
      aria-selected=${tab === id ? "true" : "false"} aria-controls="panel" tabindex=${tab === id ? 0 : -1} onClick=${() => setTab(id)}>${label}</button>`)}</div>
    <section id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
      <${Shown} key=${`${repo} ${name} ${tab}`} repo=${repo} name=${name} tick=${tick} logTick=${logTick} can=${can} verb=${verb} /></section>`;
}
