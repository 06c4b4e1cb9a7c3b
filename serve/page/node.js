// One node of a flow: what is said to it and by it, the calls that wait for a person, and what it is.

import { html, visibleJson } from "./text.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";
import { Act, Ago, Trouble, useDraft } from "./parts.js";
import { Markdown } from "./markdown.js";
import * as wire from "./wire.js";

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

const DONE = { proposed: ["asked for", "wait"], runs: ["runs", "run"], done: ["done", "go"], failed: ["failed", "bad"] };

/** What a tool is called with, in a line. */
const brief = (args) => {
  const values = args && typeof args === "object" ? Object.values(args).filter((value) => typeof value !== "object") : [args];
  return values.map(String).join(" · ").slice(0, 200);
};

function Tool({ item }) {
  const [word, kind] = DONE[item.state] ?? [item.state, "none"];
  return html`<details class="tool"><summary><b>${item.name}</b> <span class="line1">${brief(item.args)}</span> <span class=${`standing ${kind}`}>${word}</span></summary>
    <pre>${shown(item.args)}</pre>${item.output !== undefined && html`<pre>${shown(item.output)}</pre>`}</details>`;
}

const When = ({ at }) => at && html`<${Ago} at=${Date.parse(at) / 1000} />`;

function Item({ item, nodes }) {
  if (item.kind === "tool") return html`<${Tool} item=${item} />`;
  if (item.kind === "user") return html`<div class=${item.sends ? "said own sends" : "said own"}><p class="dim"><b>you</b>${item.sends ? " is being sent" : item.waits ? " waits for its turn" : ""}<${When} at=${item.at} /></p><p class="asked">${item.text}</p></div>`;
  if (item.kind === "handoff") return html`<div class="said over"><p class="dim"><b>handed over by <bdi>${nodes[item.from]?.label ?? "a node that is gone"}</bdi></b><${When} at=${item.at} /></p><${Markdown} text=${item.text} /></div>`;
  return html`<div class="said agent">
    ${item.thought && html`<details><summary>Thinking</summary><pre>${item.thought}</pre></details>`}
    ${item.open ? html`<p class="asked">${item.text}</p>` : html`<${Markdown} text=${item.text} />`}
    <p class="dim">${item.open ? "it is writing" : item.ended === "interrupted" ? "cut short" : ""}<${When} at=${item.at} /></p></div>`;
}

/** A call that waits: as it is, with other arguments, or not at all. */
export function Approval({ approval, node, from, can, onDone }) {
  const first = visibleJson(JSON.stringify(approval.tool.args, null, 2));
  const [args, setArgs] = useState(first);
  const [reason, setReason] = useState("");
  let wanted = null;
  try {
    wanted = JSON.parse(args);
  } catch {
    // It is said below, where it is sent.
  }
  const changed = args.trim() !== first;
  const is = wanted !== null && typeof wanted === "object" && !Array.isArray(wanted);
  const say = (resolution) => async () => {
    await wire.call("POST", `/api/approvals/${approval.id}/resolve`, { resolution });
    onDone(approval.id);
  };
  return html`<article class="approval" aria-label=${`call of ${node?.label ?? "a node"}`}>
    <header><h3>${from ?? html`<bdi>${node?.label}</bdi>`} wants to call <code>${approval.tool.name}</code></h3><span class="standing wait">waits for you</span><${Ago} at=${approval.asked} /></header>
    ${approval.context && !approval.context.startsWith("may ") && html`<p>${approval.context}</p>`}
    <label>Arguments <textarea name="args" rows=${Math.min(12, first.split("\n").length + 1)} spellcheck=${false} readonly=${!can} value=${args} onInput=${(e) => setArgs(e.target.value)}></textarea></label>
    ${changed && !is && html`<p role="alert">This is no JSON object: it cannot be approved so.</p>`}
    ${can && html`<div class="row wrap">${changed ? is && html`<${Act} label="Approve as changed" kind="main" act=${say({ status: "modified", modifiedArgs: wanted })} />` : html`<${Act} label="Approve" kind="main" act=${say({ status: "approved" })} />`}
      <${Act} label="Deny" act=${say({ status: "denied", ...(reason && { reason }) })} />
      ${changed && html`<button type="button" class="quiet" onClick=${() => setArgs(first)}>As it was asked</button>`}</div>
      <details><summary>Say why not</summary><label><span class="hide">Why not</span> <input name="reason" placeholder="What it is told where you deny" value=${reason} onInput=${(e) => setReason(e.target.value)} /></label></details>`}
  </article>`;
}

/** A node's conversation. */
export function Node({ story, id, can, call, redraw, earlier, beginAt, onEnd, base }) {
  const node = story.run.nodes[id];
  const chat = story.chat(id);
  const [text, setText] = useDraft(`chat ${id}`);
  const [now, setNow] = useState(false);
  const [error, setError] = useState(null);
  const typed = useRef("");
  typed.current = text;
  const end = useRef(null);
  const box = useRef(null);
  const atEnd = useRef(true);
  const last = chat.items[chat.items.length - 1];
  const first = chat.items[0];
  const from = useRef([null, 0]);
  // What was laid before is kept until it was read.
  const reads = useRef(false);
  const [asks, setAsks] = useState(false);
  useLayoutEffect(() => {
    if (!box.current) return;
    const [was, below] = from.current;
    // What is laid before leaves what is read where it is.
    if (was !== first?.key && !atEnd.current) box.current.scrollTop = box.current.scrollHeight - below;
    else if (atEnd.current || last?.sends) box.current.scrollTop = box.current.scrollHeight;
    from.current = [first?.key, box.current.scrollHeight - box.current.scrollTop];
    if (atEnd.current && !reads.current) onEnd(id);
  }, [first?.key, chat.items.length, last && last.text, story.held]);
  useEffect(() => end.current?.focus(), [id]);
  useEffect(() => void beginAt(id), [id]);
  if (!node) return html`<p>This node is gone.</p>`;
  const runs = node.status === "running";
  const held = node.connection?.status === "disconnected";
  const at = `/api/runs/${story.run.id}`;
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    setError(null);
    const own = story.mine(id, text);
    setText("");
    redraw();
    try {
      const said = await wire.call("POST", `${at}/chat`, { nodeId: id, content: text, interrupt: now });
      story.taken(id, own, said.messageId);
    } catch (failed) {
      // It is taken back where it can be seen, and stays to be sent again, before what was typed meanwhile.
      story.unsaid(id, own);
      const meanwhile = typed.current;
      setText(meanwhile.trim() ? `${text}\n${meanwhile}` : text);
      setError(Object.assign(failed, { message: `Not sent: ${failed.message}` }));
    }
    redraw();
  };
  const act = (verb) => () => call("POST", `${at}/nodes/${id}/${verb}`, {});
  const keys = (e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && send(e);
  // What is read further up stays where it is.
  const scrolled = ({ target }) => {
    atEnd.current = target.scrollTop + target.clientHeight >= target.scrollHeight - 30;
    from.current[1] = target.scrollHeight - target.scrollTop;
    if (!atEnd.current) reads.current = false;
    else if (!reads.current) onEnd(id);
  };
  const before = async () => {
    if (asks) return;
    setAsks(true);
    setError(null);
    reads.current = true;
    try {
      await earlier(id);
    } catch (failed) {
      setError(Object.assign(failed, { message: `Nothing earlier was loaded: ${failed.message}` }));
    }
    setAsks(false);
    if (!story.cursor) box.current?.focus({ preventScroll: true });
  };
  return html`<section class="node panel" aria-label=${`node ${node.label}`}>
    <div class="heading"><h3 tabindex="-1" ref=${end}><bdi>${node.label}</bdi></h3><span class=${`standing ${node.status}`}>${node.status}</span>${held && html`<span class="standing wait">held</span>`}<a class="quiet time" href=${base}>Close</a></div>
    <p class="dim">${node.roleTemplate} · ${node.provider}${node.alias ? ` · ${node.alias}` : ""}${node.usage?.totalTokens ? ` · ${node.usage.totalTokens.toLocaleString()} tokens` : ""}${node.inboxCount ? ` · ${node.inboxCount} wait` : ""}</p>
    ${node.summary !== node.status && html`<p class="subject">${node.summary}</p>`}
    ${can && html`<div class="verbs">
      ${runs && html`<${Act} label="Interrupt" act=${act("interrupt")} />`}
      ${held ? html`<${Act} label="Start" act=${act("start")} />` : html`<${Act} label="Stop" confirm="End its turn and hold it" act=${act("stop")} />`}
      <${Act} label="New session" confirm="Drop what waits" act=${act("reset")} />
      <${Act} label="Remove" confirm="Remove it with its branch" act=${async () => { await call("DELETE", `${at}/nodes/${id}`); location.hash = base; }} /></div>`}
    <div class="chat" role="log" aria-live="polite" aria-label="conversation" aria-busy=${asks} tabindex="0" ref=${box} onScroll=${scrolled}>
      ${story.cursor && html`<button type="button" class="quiet earlier" onClick=${before}>${asks ? "Loading earlier…" : "Load earlier"}</button>`}
      ${chat.items.length === 0 && !story.cursor && html`<p class="dim">Nothing was said yet. What you write here is its next turn.</p>`}
      ${chat.items.map((item, n) => html`<${Item} key=${item.key ?? n} item=${item} nodes=${story.run.nodes} />`)}</div>
    ${chat.logs.length > 0 && html`<details><summary>${chat.logs.length} lines that are no message</summary><pre>${chat.logs.join("\n")}</pre></details>`}
    ${can && html`<form class="next answer" onSubmit=${send} onKeyDown=${keys}><label><span>Message to <bdi>${node.label}</bdi></span> <textarea name="chat" rows="3" value=${text} onInput=${(e) => setText(e.target.value)}></textarea></label>
      <div class="row wrap"><button class="main">Send</button>${runs && html`<label class="check"><input type="checkbox" checked=${now} onChange=${(e) => setNow(e.target.checked)} /> End the turn that runs</label>`}</div>
      <${Trouble} error=${error} /></form>`}
  </section>`;
}
