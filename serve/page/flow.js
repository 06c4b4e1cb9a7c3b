// Flows: the list of them, and one with its graph, its nodes and their conversations.

import { html } from "./text.js";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";
import { Act, Ago, Empty, Trouble } from "./parts.js";
import { Approval, Node } from "./node.js";
import { Question } from "./say.js";
import { useApprovals } from "./screens.js";
import { Story, placed } from "./story.js";
import * as wire from "./wire.js";

const WIDE = 200;
const HIGH = 66;
const GAP = [72, 24];
const PROVIDERS = ["claude", "codex", "gemini", "custom"];
const ROLES = ["orchestrator", "planner", "investigator", "implementer", "reviewer"];

const counted = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

export const flowPath = (run, node) => `#/flow/${run}${node ? `/${node}` : ""}`;

function New({ call }) {
  const [name, setName] = useState("");
  const [error, setError] = useState(null);
  const make = async (event) => {
    event.preventDefault();
    setError(null);
    try {
      const { run } = await call("POST", "/api/runs", name.trim() ? { name: name.trim() } : {});
      location.hash = flowPath(run.id);
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<form class="tools" onSubmit=${make}><label>New flow <input name="flow" autocomplete="off" placeholder="its name" value=${name} onInput=${(e) => setName(e.target.value)} /></label><button class="main">Make it</button><${Trouble} error=${error} /></form>`;
}

/** All flows. */
export function Flows({ can, tick }) {
  const [known, setKnown] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    let gone = false;
    wire.call("GET", "/api/runs").then((value) => { if (!gone) { setKnown(value); setError(null); } }, (failed) => gone || setError(failed));
    return () => (gone = true);
  }, [tick]);
  if (error) return html`<${Trouble} error=${error} />`;
  if (!known) return null;
  const runs = [...known.runs].sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
  return html`${can && html`<${New} call=${wire.call} />`}
    ${!runs.length && html`<${Empty} title="No flow yet." commands=${[["Once in a repository:", "git aynig flow init"]]}><p>A flow is several agents, each on a branch of its own, that hand work to one another.</p><//>`}
    <ul class="cards flows">${runs.map((run) => html`<li key=${run.id}><article aria-label=${known.names?.[run.id] ?? run.id}>
      <header><h3><a class="name" href=${flowPath(run.id)}>${known.names?.[run.id] ?? run.id}</a></h3><span class=${`standing ${run.status}`}>${run.status}</span><${Ago} at=${Date.parse(run.updatedAt) / 1000} /></header>
      <p class="dim">${counted(Object.keys(run.nodes).length, "node")} · ${run.mode.toLowerCase()} · ${run.globalMode.toLowerCase()}${run.usage?.totalTokens ? ` · ${run.usage.totalTokens.toLocaleString()} tokens` : ""}</p>
      <div class="chips">${Object.values(run.nodes).map((node) => html`<span key=${node.id} class=${`standing ${node.status}`}>${node.label}: ${node.status}</span>`)}</div></article></li>`)}</ul>`;
}

/** The graph; the table below says the same. */
function Graph({ run, selected }) {
  const at = placed(run);
  const spot = (id) => { const { x, y } = at.get(id); return [x * (WIDE + GAP[0]) + 2, y * (HIGH + GAP[1]) + 4]; };
  const most = [...at.values()].reduce((most, { x, y }) => [Math.max(most[0], x), Math.max(most[1], y)], [0, 0]);
  const size = [(most[0] + 1) * (WIDE + GAP[0]) - GAP[0] + 6, (most[1] + 1) * (HIGH + GAP[1]) - GAP[1] + 8];
  const line = (edge) => {
    const [[ax, ay], [bx, by]] = [spot(edge.from), spot(edge.to)];
    if (edge.from === edge.to) return `M${ax + WIDE - 30},${ay} c0,-16 24,-16 24,0`;
    if (ax === bx) return `M${ax + WIDE},${ay + HIGH / 2} C${ax + WIDE + 36},${ay + HIGH / 2} ${bx + WIDE + 36},${by + HIGH / 2} ${bx + WIDE},${by + HIGH / 2}`;
    const [from, to] = ax < bx ? [ax + WIDE, bx] : [ax, bx + WIDE];
    const middle = (from + to) / 2;
    return `M${from},${ay + HIGH / 2} C${middle},${ay + HIGH / 2} ${middle},${by + HIGH / 2} ${to},${by + HIGH / 2}`;
  };
  const edges = Object.values(run.edges).filter((edge) => at.has(edge.from) && at.has(edge.to));
  const cut = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);
  return html`<div class="graph" tabindex="0" role="region" aria-label="graph; the table below says the same"><svg viewBox=${`0 0 ${size[0]} ${size[1]}`} style=${{ width: `${size[0]}px`, minWidth: `${size[0] * 0.75}px` }} role="group" aria-label="nodes and edges">
    <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" /></marker></defs>
    ${edges.map((edge) => html`<path key=${edge.id} class="edge" d=${line(edge)} marker-end="url(#tip)" marker-start=${edge.bidirectional && edge.from !== edge.to ? "url(#tip)" : null}><title>${edge.label || edge.type}</title></path>`)}
    ${Object.values(run.nodes).map((node) => { const [x, y] = spot(node.id); return html`<a key=${node.id} href=${flowPath(run.id, node.id)} aria-current=${selected === node.id ? "true" : null}><g class=${`box ${node.status}`}>
      <rect x=${x} y=${y} width=${WIDE} height=${HIGH} rx="9" /><text x=${x + 12} y=${y + 22} class="label">${cut(node.label, 23)}</text>
      <circle cx=${x + 15.5} cy=${y + 36} r="3.5" /><text x=${x + 24} y=${y + 40}>${cut(`${node.status}${node.inboxCount ? ` · ${node.inboxCount} wait` : ""}`, 26)}</text><text x=${x + 12} y=${y + 56}>${cut(node.summary === node.status ? `${node.roleTemplate}, ${node.provider}` : node.summary, 29)}</text></g></a>`; })}
  </svg></div>`;
}

function Nodes({ run, can, call }) {
  const label = (id) => run.nodes[id]?.label ?? id;
  const edges = (id) => Object.values(run.edges).filter((edge) => edge.from === id);
  return html`<div class="wide" tabindex="0" role="region" aria-label="nodes as a table"><table class="nodes"><thead><tr><th scope="col">node</th><th scope="col">is</th><th scope="col">role</th><th scope="col">leads to</th></tr></thead>
    <tbody>${Object.values(run.nodes).map((node) => html`<tr key=${node.id}><th scope="row"><a class="name" href=${flowPath(run.id, node.id)}><bdi>${node.label}</bdi></a></th><td><span class=${`standing ${node.status}`}>${node.status}</span></td><td>${node.roleTemplate}, ${node.provider}</td>
      <td>${edges(node.id).map((edge) => html`<span key=${edge.id} class="leads"><span><bdi>${label(edge.to)}</bdi> (${edge.label || edge.type}${edge.bidirectional ? ", both ways" : ""})</span>${can && html` <${Act} label="Remove" act=${() => call("DELETE", `/api/runs/${run.id}/edges/${edge.id}`)} />`}</span>`)}</td></tr>`)}</tbody></table></div>`;
}

function Add({ run, call }) {
  const [said, setSaid] = useState({ label: "", roleTemplate: Object.keys(run.nodes).length ? "implementer" : "orchestrator", provider: "claude" });
  const [error, setError] = useState(null);
  const set = (key) => ({ target }) => setSaid((was) => ({ ...was, [key]: target.value }));
  const add = async (event) => {
    event.preventDefault();
    setError(null);
    try {
      await call("POST", `/api/runs/${run.id}/nodes`, { node: { ...said, session: { resume: true, resetCommands: ["/new", "/clear"] } } });
      setSaid((was) => ({ ...was, label: "", roleTemplate: was.roleTemplate === "orchestrator" ? "implementer" : was.roleTemplate }));
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<form class="tools" aria-label="add a node" onSubmit=${add}><label>New node <input name="label" required autocomplete="off" placeholder="its name" value=${said.label} onInput=${set("label")} /></label>
    <label>Role <input name="role" required list="roles" value=${said.roleTemplate} onInput=${set("roleTemplate")} /></label><datalist id="roles">${ROLES.map((role) => html`<option key=${role} value=${role} />`)}</datalist>
    <label>Agent <select name="provider" value=${said.provider} onChange=${set("provider")}>${PROVIDERS.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
    <button>Add</button><${Trouble} error=${error} /></form>`;
}

function Connect({ run, call }) {
  const nodes = Object.values(run.nodes);
  const [ends, setEnds] = useState({});
  const [oneWay, setOneWay] = useState(false);
  const [error, setError] = useState(null);
  if (nodes.length < 2) return null;
  const end = (which, n) => ends[which] ?? nodes[n].id;
  const join = async (event) => {
    event.preventDefault();
    setError(null);
    try {
      await call("POST", `/api/runs/${run.id}/edges`, { edge: { from: end("from", 0), to: end("to", 1), bidirectional: !oneWay } });
    } catch (failed) {
      setError(failed);
    }
  };
  const choose = (which, n, label) => html`<label>${label} <select name=${which} value=${end(which, n)} onChange=${({ target }) => setEnds((was) => ({ ...was, [which]: target.value }))}>${nodes.map((node) => html`<option key=${node.id} value=${node.id}>${node.label}</option>`)}</select></label>`;
  return html`<form class="tools" aria-label="connect nodes" onSubmit=${join}>${choose("from", 0, "Connect")}${choose("to", 1, "with")}
    <label class="check"><input type="checkbox" name="oneway" checked=${oneWay} onChange=${(e) => setOneWay(e.target.checked)} /> One way</label><button>Connect</button><${Trouble} error=${error} /></form>`;
}

/** Events of a page of history, and how many pages are asked for at once, where none of them is of the node that is shown. */
const PAGE = 500;
const AT_ONCE = 40;

const pageOf = (id, before) => wire.call("GET", `/api/runs/${id}/events?${new URLSearchParams({ limit: PAGE, ...(before && { before }) })}`);

/** Follows a flow: its state, its history, and what comes. */
function useStory(id, tick) {
  const story = useRef(null);
  const [error, setError] = useState(null);
  const [, draw] = useState(0);
  const frame = useRef(0);
  const heard = useRef(null);
  // What could not be read is read again with the next change.
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (error) setTries((n) => n + 1);
  }, [tick]);
  const redraw = useCallback(() => {
    if (!frame.current) frame.current = setTimeout(() => { frame.current = 0; draw((n) => n + 1); }, 30);
  }, []);
  useLayoutEffect(() => {
    story.current = null;
    heard.current = null;
    setError(null);
    let end = () => {};
    let gone = false;
    (async () => {
      // What waits is asked for last: what of it is answered meanwhile is heard of below.
      const [{ run, name, repo }, history, { approvals }] = [await wire.call("GET", `/api/runs/${id}`), await pageOf(id), await wire.call("GET", "/api/approvals")];
      if (gone) return;
      story.current = Object.assign(Story.of(run, history), { name, repo });
      story.current.waits(approvals.filter(({ runId }) => runId === id));
      redraw();
      end = wire.follow(id, () => story.current.seq, (event) => { heard.current?.push(event); story.current.take(event); redraw(); });
    })().catch((failed) => gone || setError(failed));
    return () => { gone = true; end(); };
  }, [id, tries]);
  /** Lays what was before, until that is of this node. */
  const before = async (of, node) => {
    const many = of.chat(node).items.length;
    for (let n = 0; n < AT_ONCE && of.cursor && of.chat(node).items.length === many; n += 1) {
      const from = of.cursor;
      const history = await pageOf(id, from);
      // It may have forgotten what that page is laid before.
      if (of.cursor !== from) break;
      of.lay(history);
    }
  };
  const earlier = async (node) => {
    await before(story.current, node);
    redraw();
  };
  /** A node whose latest words are far back, behind lines that are no message, or behind the words of others, begins with them. */
  const begin = async (of, node) => {
    if (of.chat(node).items.length) return;
    await before(of, node);
    of.begun = of.held;
  };
  const beginAt = async (node) => {
    // What is there stays, and can be asked for again.
    await begin(story.current, node).catch(() => {});
    redraw();
  };
  /** Where the latest is looked at: of a long history only that is kept. */
  const forget = async (node) => {
    const of = story.current;
    if (!of || !of.isLong() || heard.current) return;
    const since = (heard.current = []);
    try {
      const made = Story.of(of.run, await pageOf(id));
      await begin(made, node);
      of.become(made, since);
    } catch {
      // What is there stays.
    }
    if (heard.current === since) heard.current = null;
    redraw();
  };
  return [story.current && story.current.run.id === id ? story.current : null, error, { redraw, earlier, beginAt, forget }];
}

/** One flow. */
export function Flow({ id, node, can, questions, repo, verb, tick }) {
  const [story, error, { redraw, earlier, beginAt, forget }] = useStory(id, tick);
  const asked = questions.filter(({ branch }) => story?.repo === repo && branch.startsWith(`flow/${story.name}/`));
  const approvals = useApprovals(asked);
  if (error) return html`<${Trouble} error=${error} />`;
  if (!story) return null;
  const { run } = story;
  const at = `/api/runs/${id}`;
  const call = async (...asked) => {
    const answer = await wire.call(...asked);
    if (answer.run && answer.run.id === id) Object.assign(run, answer.run);
    if (answer.node) run.nodes[answer.node.id] = answer.node;
    if (answer.edge) run.edges[answer.edge.id] = answer.edge;
    if (answer.edgeId) delete run.edges[answer.edgeId];
    if (answer.nodeId) delete run.nodes[answer.nodeId];
    redraw();
    return answer;
  };
  const set = (patch) => () => call("PATCH", at, { patch });
  const gone = (approval) => { story.approvals.delete(approval); redraw(); };
  const choose = (key, words) => html`<select name=${key} aria-label=${key === "mode" ? "mode" : "what it may do"} disabled=${!can} value=${run[key]} onChange=${(e) => set({ [key]: e.target.value })().catch(redraw)}>${words.map((word) => html`<option key=${word} value=${word}>${word.toLowerCase()}</option>`)}</select>`;
  const nodes = Object.keys(run.nodes).length;
  return html`<header class="about"><div class="heading"><h2 tabindex="-1"><bdi>${story.name ?? id}</bdi></h2><span class=${`standing ${run.status}`}>${run.status}</span><span class="time">${counted(nodes, "node")}${run.usage?.totalTokens ? ` · ${run.usage.totalTokens.toLocaleString()} tokens` : ""}</span></div>
    <div class="verbs">${can && run.status !== "running" && html`<${Act} label="Play" kind="main" act=${set({ status: "running" })} />`}
      ${can && run.status === "running" && html`<${Act} label="Pause" act=${set({ status: "paused" })} />`}
      ${can && run.status !== "stopped" && html`<${Act} label="Stop" confirm="End its turns" act=${set({ status: "stopped" })} />`}
      ${choose("mode", ["AUTO", "INTERACTIVE"])}${choose("globalMode", ["PLANNING", "IMPLEMENTATION"])}</div></header>
    ${story.evidence && run.status === "paused" && html`<div class="trouble" role="alert"><p>It goes in a circle, and was paused. Its last turns:</p><ul>${story.evidence.summaries.map((text, n) => html`<li key=${n}>${text}</li>`)}</ul></div>`}
    <div role="status" aria-live="polite" class="cards calls">${[...story.approvals.values()].map((approval) => html`<${Approval} key=${approval.id} approval=${approval} node=${run.nodes[approval.node]} can=${can} onDone=${gone} />`)}${approvals && asked.filter((q) => !approvals.has(q.id)).map((q) => html`<${Question} key=${q.id} question=${q} repo=${repo} can=${can} verb=${verb} />`)}</div>
    <div class=${node ? "flow two" : "flow"}><div>
      ${nodes ? html`<${Graph} run=${run} selected=${node} /><${Nodes} run=${run} can=${can} call=${call} />` : html`<${Empty} title="It has no nodes yet."><p>The first is mostly an orchestrator, which hands work to the others.</p><//>`}
      ${can && html`<div class="panel forms"><${Add} run=${run} call=${call} /><${Connect} run=${run} call=${call} /></div>`}
      ${can && html`<p><${Act} label="Remove this flow" kind="quiet" confirm="Remove it with its branches" act=${async () => { await wire.call("DELETE", at); location.hash = "#/flow"; }} /></p>`}</div>
      ${node && html`<${Node} key=${node} story=${story} id=${node} can=${can} call=${call} redraw=${redraw} earlier=${earlier} beginAt=${beginAt} onEnd=${forget} base=${flowPath(id)} />`}</div>`;
}
