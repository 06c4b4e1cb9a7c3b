// What a person says: a message to a branch, an answer to a question, a pause.

import { html } from "./text.js";
import { useState } from "./vendor.js";
import { Act, Ago, BranchName, Trouble, useDraft, useOpen } from "./parts.js";
import { Diff } from "./diff.js";
import * as wire from "./wire.js";

/** A form that opens where a button was; what was typed stays where it was refused. */
export function Typed({ label, title, name, button, act, draft, rows = 3 }) {
  const { open, setOpen, first, opener } = useOpen();
  const [text, setText] = useDraft(draft);
  const [done, setDone] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      setDone(await act(text));
      setText("");
      setOpen(false);
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  const keys = (e) => {
    if (e.key === "Escape") setOpen(false);
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) send(e);
  };
  if (!open) return html`<span class="act"><button type="button" ref=${opener} onClick=${() => { setOpen(true); setDone(null); }}>${label}</button>${done && html`<span role="status">${done}</span>`}</span>`;
  return html`<form class="next" onSubmit=${send} onKeyDown=${keys}>
    <label>${title} <textarea name=${name} rows=${rows} required value=${text} ref=${first} onInput=${(e) => setText(e.target.value)}></textarea></label>
    <div class="row"><button class="main" disabled=${busy}>${button}</button><button type="button" onClick=${() => setOpen(false)}>Cancel</button></div>
    <${Trouble} error=${error} />
  </form>`;
}

/** A message to a branch. */
export function Say({ branch, repo, verb }) {
  const act = async (text) => {
    const sent = await verb(repo, branch.branch, "send", { text });
    return sent.waiting ? "Sent. It waits until the branch takes messages in." : "Sent, and heard.";
  };
  return html`<${Typed} label="Message…" title=${html`<span>Message to <bdi>${branch.branch}</bdi></span>`} name="text" button="Send it" act=${act} draft=${`say ${repo} ${branch.branch}`} />`;
}

/** Answers a question: at once where choices are offered. */
function Answers({ question, repo, verb }) {
  const [text, setText] = useDraft(`words ${question.id}`);
  const [own, setOwn] = useDraft(`answer ${question.id}`);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const answer = async (choice) => {
    setBusy(true);
    setError(null);
    try {
      const seen = question.snapshot ? { seen: question.snapshot } : {};
      await verb(repo, question.branch, "answer", { question: question.id, choice, message: text, ...seen });
      setText("");
      setOwn("");
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  const free = question.choices.length === 0;
  return html`<form class="next answer" onSubmit=${(e) => { e.preventDefault(); if (free) answer(own.trim()); }}>
    <div class="row">${free ? html`<label class="grow"><span class="hide">Answer</span> <input name="answer" required maxlength="1000" autocomplete="off" placeholder="Your answer" value=${own} onInput=${(e) => setOwn(e.target.value)} /></label><button class="main" disabled=${busy}>Answer</button>`
      : question.choices.map((choice, n) => html`<button type="button" key=${choice} class=${n === 0 ? "main" : ""} disabled=${busy} onClick=${() => answer(choice)}><bdi>${choice}</bdi></button>`)}</div>
    <details open=${text !== ""}><summary>Say more with the answer</summary><label><span class="hide">Words that go with the answer</span> <textarea name="words" rows="2" placeholder="Words that go with the answer" value=${text} onInput=${(e) => setText(e.target.value)}></textarea></label></details>
    <${Trouble} error=${error} />
  </form>`;
}

/** What a card's branch changed, shown where it was asked for; its lines can be commented on. */
export function Work({ label, ask, on, empty, send }) {
  const [shown, setShown] = useState(false);
  return html`<div class="work"><button type="button" class="quiet" aria-expanded=${shown ? "true" : "false"} onClick=${() => setShown(!shown)}>${shown ? "Hide the work" : label}</button>
    ${shown && html`<${Diff} ask=${ask} on=${on} empty=${empty} send=${send} />`}</div>`;
}

/** Sends comments on lines as one message to their branch. */
export const commenting = (repo, branch, verb) => async (text) => {
  const sent = await verb(repo, branch, "send", { text });
  return sent.waiting ? "Sent. They wait until the branch takes messages in." : "Sent, and heard.";
};

/** A question, with what it is about. */
export function Question({ question, repo, can, verb }) {
  return html`<article aria-label=${`question of ${question.branch}`}>
    <header><h3><${BranchName} repo=${repo} name=${question.branch} /></h3><span class="standing wait">asks you</span><${Ago} at=${question.asked} /></header>
    <p class="asked">${question.text}</p>
    ${question.choices.length > 0 && !can && html`<p class="dim">${question.choices.join(", ")}</p>`}
    ${question.snapshot && html`<${Work} label="Show the work it is about" ask=${() => wire.askedAbout(repo, question.id)} on=${[question.id]} empty="It has changed no file so far." send=${can ? commenting(repo, question.branch, verb) : null} />`}
    ${can && html`<${Answers} question=${question} repo=${repo} verb=${verb} />`}
  </article>`;
}

const what = (pause) => (pause.patterns.length ? pause.patterns.join(", ") : "everything");

/** What is held, by whom, and how it goes on. */
export function Pauses({ pauses, repo, can, reread }) {
  if (!pauses.length) return null;
  const resume = (id) => async () => {
    await wire.post(repo, "resume", { ids: [id] });
    await reread();
  };
  return html`<ul class="bar pauses">${pauses.map((pause) => html`<li key=${pause.id}><span><b>Paused:</b> <bdi>${what(pause)}</bdi>, by ${pause.holder}${pause.reason && ` (${pause.reason})`}, <${Ago} at=${pause.since} /></span>
    ${can && html`<${Act} label="Resume" act=${resume(pause.id)} />`}</li>`)}</ul>`;
}

/** Holds everything. */
export function PauseAll({ repo, reread }) {
  const hold = async () => {
    await wire.post(repo, "pause", {});
    await reread();
  };
  return html`<${Act} label="Pause everything" confirm="Start nothing more" act=${hold} />`;
}
