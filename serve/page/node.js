// One node of a flow: what is said to it and by it, the calls that wait for a person, and what it is.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";
import { Act, Trouble } from "./parts.js";
import { Markdown } from "./markdown.js";
import * as wire from "./wire.js";

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

function Tool({ item }) {
  return html`<details class="tool"><summary><b>${item.name}</b> <span class="dim">${item.state}</span></summary>
    <pre>${shown(item.args)}</pre>${item.output !== undefined && html`<pre>${shown(item.output)}</pre>`}</details>`;
}

function Item({ item, nodes }) {
  if (item.kind === "tool") return html`<${Tool} item=${item} />`;
  if (item.kind === "user") return html`<div class="said own"><p class="dim">you${item.waits && " · it waits"}</p><p class="asked">${item.text}</p></div>`;
  if (item.kind === "handoff") return html`<div class="said"><p class="dim">handed over by <bdi>${nodes[item.from]?.label ?? "a node that is gone"}</bdi></p><${Markdown} text=${item.text} /></div>`;
  return html`<div class="said agent">
    ${item.thought && html`<details><summary>thinking</summary><pre>${item.thought}</pre></details>`}
    ${item.open ? html`<p class="asked">${item.text}</p>` : html`<${Markdown} text=${item.text} />`}
    ${item.ended === "interrupted" && html`<p class="dim">interrupted</p>`}</div>`;
}

/** A call that waits: as it is, with other arguments, or not at all. */
export function Approval({ approval, node, can, onDone }) {
  const first = JSON.stringify(approval.tool.args, null, 2);
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
    <h3><bdi>${node?.label}</bdi> wants to call <code>${approval.tool.name}</code> <span class="standing wait">waits for you</span></h3>
    ${approval.context && html`<p>${approval.context}</p>`}
    <label>Arguments <textarea name="args" rows=${Math.min(12, first.split("\n").length + 1)} spellcheck=${false} readonly=${!can} value=${args} onInput=${(e) => setArgs(e.target.value)}></textarea></label>
    ${changed && !is && html`<p role="alert">These are no JSON object.</p>`}
    ${can && html`<details><summary>Add a word to a no</summary><label>Why not <input name="reason" value=${reason} onInput=${(e) => setReason(e.target.value)} /></label></details>
      <div class="row wrap">${changed ? is && html`<${Act} label="Approve as changed" kind="main" act=${say({ status: "modified", modifiedArgs: wanted })} />` : html`<${Act} label="Approve" kind="main" act=${say({ status: "approved" })} />`}
      <${Act} label="Deny" act=${say({ status: "denied", ...(reason && { reason }) })} /></div>`}
  </article>`;
}

/** A node's conversation. */
export function Node({ story, id, can, call, redraw, base }) {
  const node = story.run.nodes[id];
  const chat = story.chat(id);
  const [text, setText] = useState("");
  const [now, setNow] = useState(false);
  const [error, setError] = useState(null);
  const end = useRef(null);
  const box = useRef(null);
  const last = chat.items[chat.items.length - 1];
  useLayoutEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [chat.items.length, last && last.text]);
  useEffect(() => end.current?.focus(), [id]);
  if (!node) return html`<p>This node is gone.</p>`;
  const runs = node.status === "running";
  const held = node.connection?.status === "disconnected";
  const at = `/api/runs/${story.run.id}`;
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    setError(null);
    try {
      const said = await wire.call("POST", `${at}/chat`, { nodeId: id, content: text, interrupt: now });
      if (said.messageId) story.mine(id, said.messageId, text);
      setText("");
      redraw();
    } catch (failed) {
      // What was typed stays.
      setError(failed);
    }
  };
  const act = (verb) => () => call("POST", `${at}/nodes/${id}/${verb}`, {});
  const keys = (e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && send(e);
  return html`<section class="node" aria-label=${`node ${node.label}`}>
    <h3 tabindex="-1" ref=${end}><bdi>${node.label}</bdi> <span class=${`standing ${node.status}`}>${node.status}</span></h3>
    <p class="dim">${node.roleTemplate} · ${node.provider}${node.alias ? ` · ${node.alias}` : ""}${node.usage ? ` · ${node.usage.totalTokens.toLocaleString()} tokens` : ""}</p>
    ${node.summary !== node.status && html`<p class="subject">${node.summary}</p>`}
    ${can && html`<div class="verbs">
      ${runs && html`<${Act} label="Interrupt" act=${act("interrupt")} />`}
      ${held ? html`<${Act} label="Start" act=${act("start")} />` : html`<${Act} label="Stop" confirm="End its turn and hold it" act=${act("stop")} />`}
      <${Act} label="New session" confirm="Drop what waits" act=${act("reset")} />
      <${Act} label="Remove" confirm="Remove it with its branch" act=${async () => { await call("DELETE", `${at}/nodes/${id}`); location.hash = base; }} /></div>`}
    <div class="chat" role="log" aria-live="polite" aria-label="conversation" tabindex="0" ref=${box}>
      ${chat.items.length === 0 && html`<p class="dim">Nothing was said yet. What you write here is its next turn.</p>`}
      ${chat.items.map((item, n) => html`<${Item} key=${item.id ?? n} item=${item} nodes=${story.run.nodes} />`)}</div>
    ${chat.logs.length > 0 && html`<details><summary>${chat.logs.length} lines that are no message</summary><pre>${chat.logs.join("\n")}</pre></details>`}
    ${can && html`<form class="next" onSubmit=${send} onKeyDown=${keys}><label>Message <textarea name="chat" rows="3" value=${text} onInput=${(e) => setText(e.target.value)}></textarea></label>
      <div class="row wrap"><button class="main">Send</button>${runs && html`<label class="check"><input type="checkbox" checked=${now} onChange=${(e) => setNow(e.target.checked)} /> and end the turn that runs</label>`}</div>
      <${Trouble} error=${error} /></form>`}
  </section>`;
}
