// A page as others would write one for the shared contract: it knows section 12 of the specification and no word of
// git-aynig. It asks its own origin with no token, keeps what it was told by the ids of events, and never closes a socket
// when it leaves a session, as the original's page does not either: what comes twice, or of another session, is passed by.

const ACTIVE = "vuhlp-active-run-id";
const PAGE = 200;
const find = (path) => document.querySelector(path);

/** The session that is shown: its run, every event that was told of it, and what these make of it. */
let session = null;
let runs = [];

async function call(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!answer.ok) throw new Error(`Request failed (${answer.status}): ${await answer.text()}`);
  return answer.json();
}

/** Does what a person asked for, and says what went wrong. */
const act = (doing) => async (event) => {
  if (event) event.preventDefault();
  find("#trouble").textContent = "";
  try {
    await doing(event);
  } catch (error) {
    find("#trouble").textContent = error.message;
  }
};

// What events mean.

const fresh = () => ({ chats: new Map(), approvals: new Map(), edges: new Map() });

function chatOf(story, node) {
  if (!story.chats.has(node)) story.chats.set(node, []);
  return story.chats.get(node);
}

/** A bubble that a person's own words made before the server told of them. */
const isProvisional = (text) => (said) => said.provisional && said.text.trim() === text.trim() && Date.now() - said.at < 10000;

function closed(story, node, status) {
  if (status === undefined || status === "running") return;
  for (const said of chatOf(story, node)) if (said.open) Object.assign(said, { open: false, interrupted: true });
}

/** What history and what comes live mean alike. */
function told(story, event) {
  const chat = event.nodeId && chatOf(story, event.nodeId);
  switch (event.type) {
    case "message.user": {
      const own = chatOf(story, event.message.nodeId);
      const at = own.findIndex(isProvisional(event.message.content));
      own.splice(at < 0 ? own.length : at, at < 0 ? 0 : 1, { kind: "user", text: event.message.content });
      break;
    }
    case "message.assistant.delta": {
      let said = chat.find((one) => one.open);
      if (!said) chat.push((said = { kind: "assistant", text: "", open: true }));
      said.text += event.delta;
      break;
    }
    case "message.assistant.final": {
      const said = chat.find((one) => one.open);
      const last = { kind: "assistant", text: event.content, open: false, interrupted: event.status === "interrupted" };
      if (said) Object.assign(said, last);
      else chat.push(last);
      break;
    }
    case "handoff.sent":
      chatOf(story, event.envelope.toNodeId).push({ kind: "handoff", text: event.envelope.payload.message });
      break;
    case "tool.proposed":
    case "tool.started":
      if (!chat.some((one) => one.tool === event.tool.id)) chat.push({ kind: "tool", tool: event.tool.id, text: event.tool.name });
      break;
    case "edge.created":
      story.edges.set(event.edge.id, event.edge);
      break;
    case "edge.deleted":
      story.edges.delete(event.edgeId);
      break;
    case "approval.requested":
      story.approvals.set(event.approvalId, event);
      break;
    case "approval.resolved":
      story.approvals.delete(event.approvalId);
      break;
    default:
  }
}

const BY_KEY = ["nodes", "nodeConfigs", "edges", "artifacts"];

/** What only what comes live means: the run that was asked for has the rest. */
function live(run, story, event) {
  const node = run.nodes[event.nodeId];
  switch (event.type) {
    case "run.patch":
      for (const [key, value] of Object.entries(event.patch)) {
        if (BY_KEY.includes(key)) Object.assign(run[key], value);
        else run[key] = value;
      }
      break;
    case "run.mode":
      for (const key of ["mode", "globalMode"]) if (event[key]) run[key] = event[key];
      break;
    case "node.patch":
      if (node) Object.assign(node, event.patch);
      else if (event.patch.label && event.patch.permissions) run.nodes[event.nodeId] = { ...event.patch };
      closed(story, event.nodeId, event.patch.status);
      break;
    case "node.progress":
      if (node) Object.assign(node, { status: event.status, summary: event.summary });
      closed(story, event.nodeId, event.status);
      break;
    case "node.deleted":
      delete run.nodes[event.nodeId];
      break;
    default:
  }
}

/** Takes an event that a socket told; those that come before the history is here wait for it. */
function take(mine, event) {
  if (mine.waiting) return void mine.waiting.push(event);
  if (event.runId !== mine.run.id || mine.seen.has(event.id)) return;
  mine.seen.add(event.id);
  mine.events.push(event);
  told(mine.story, event);
  live(mine.run, mine.story, event);
  draw();
}

/** Lays a page of the history under what is known. */
function lay(mine, { events, page }) {
  const older = events.filter((event) => !mine.seen.has(event.id));
  older.forEach((event) => mine.seen.add(event.id));
  mine.events.unshift(...older);
  mine.cursor = page.nextCursor;
  mine.story = fresh();
  for (const edge of Object.values(mine.run.edges)) mine.story.edges.set(edge.id, edge);
  for (const event of mine.events) {
    told(mine.story, event);
    if (event.nodeId && (event.type === "node.progress" || event.type === "node.patch")) {
      closed(mine.story, event.nodeId, event.status ?? event.patch?.status);
    }
  }
}

// Sessions.

function connect(mine, id) {
  const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws?runId=${id}`);
  socket.onmessage = ({ data }) => take(session, JSON.parse(data));
  socket.onclose = () => session === mine && setTimeout(() => show(id), 1000);
  return new Promise((opened) => {
    socket.onopen = opened;
    socket.onerror = opened;
  });
}

/** Shows a session. */
async function show(id) {
  const mine = (session = { run: null, waiting: [], seen: new Set(), events: [], cursor: null, story: fresh() });
  localStorage.setItem(ACTIVE, id);
  await connect(mine, id);
  const { run } = await call("GET", `/api/runs/${id}`);
  ({ runs } = await call("GET", "/api/runs"));
  const history = await call("GET", `/api/runs/${id}/events?limit=${PAGE}`);
  if (session !== mine) return;
  mine.run = run;
  lay(mine, history);
  const { waiting } = mine;
  mine.waiting = null;
  waiting.forEach((event) => take(mine, event));
  await place();
  draw();
}

/** Nodes without a place get one, and that is kept. */
async function place() {
  const { run } = session;
  const layout = run.layout ?? { positions: {}, viewport: { x: 0, y: 0, zoom: 1 } };
  const homeless = Object.keys(run.nodes).filter((id) => !layout.positions[id]);
  if (!homeless.length) return;
  homeless.forEach((id, n) => (layout.positions[id] = { x: 200 + 280 * (n % 4), y: 150 + 200 * Math.floor(n / 4) }));
  const patch = { layout: { ...layout, updatedAt: new Date().toISOString() } };
  const answer = await call("PATCH", `/api/runs/${run.id}`, { patch });
  run.layout = answer.run.layout;
}

async function set(patch) {
  const { run } = await call("PATCH", `/api/runs/${session.run.id}`, { patch });
  if (session.run.id === run.id) session.run = run;
  draw();
}

async function begin() {
  ({ runs } = await call("GET", "/api/runs"));
  if (!runs.length) runs = [(await call("POST", "/api/runs", {})).run];
  runs.sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
  const kept = localStorage.getItem(ACTIVE);
  await show(runs.find((run) => run.id === kept)?.id ?? runs[0].id);
}

// What is drawn. What a person types or chose stays: an element is made once.

/** Puts options into a box, which keeps its choice. */
function choose(box, options) {
  const was = box.value;
  const same = options.length === box.options.length && options.every(([id, text], n) => box.options[n].value === id && box.options[n].text === text);
  if (same) return;
  box.replaceChildren(...options.map(([id, text]) => new Option(text, id)));
  if (options.some(([id]) => id === was)) box.value = was;
}

function made(tag, text, more = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  return Object.assign(element, more);
}

const button = (text, doing) => made("button", text, { type: "button", onclick: act(doing) });

/** The card of a node. */
function card(node) {
  const box = made("article", "", { id: `n-${node.id}` });
  box.append(made("h2", ""), made("p", "", { className: "is" }), made("div", "", { className: "chat" }));
  const text = document.createElement("textarea");
  text.rows = 2;
  const say = (interrupt) => async () => {
    const content = text.value;
    if (!content.trim()) return;
    chatOf(session.story, node.id).push({ kind: "user", text: content, provisional: true, at: Date.now() });
    text.value = "";
    draw();
    await call("POST", `/api/runs/${session.run.id}/chat`, { nodeId: node.id, content, interrupt });
  };
  const verb = (name) => () => call("POST", `/api/runs/${session.run.id}/nodes/${node.id}/${name}`);
  const buttons = [["Queue", say(false)], ["Interrupt", say(true)], ["Hold", verb("interrupt")], ["Stop agent", verb("stop")], ["Start agent", verb("start")], ["Reset", verb("reset")]];
  box.append(text, ...buttons.map(([name, doing]) => button(name, doing)));
  box.append(button("Remove", () => call("DELETE", `/api/runs/${session.run.id}/nodes/${node.id}`)));
  return box;
}

function drawNode(node) {
  const box = document.getElementById(`n-${node.id}`) ?? find("main").appendChild(card(node));
  box.setAttribute("aria-label", node.label);
  box.querySelector("h2").textContent = node.label;
  box.querySelector(".is").textContent = `${node.status}: ${node.summary}${node.inboxCount ? ` (${node.inboxCount} wait)` : ""}`;
  const said = chatOf(session.story, node.id).map((one) => {
    const tags = `${one.open ? " open" : ""}${one.interrupted ? " interrupted" : ""}`;
    return made("p", one.text, { className: `said ${one.kind}${tags}` });
  });
  box.querySelector(".chat").replaceChildren(...said);
}

function drawApproval([id, asked]) {
  const resolve = (status) => async () => {
    await call("POST", `/api/approvals/${id}/resolve`, { resolution: { status } });
    session.story.approvals.delete(id);
    draw();
  };
  const label = session.run.nodes[asked.nodeId]?.label ?? asked.nodeId;
  const box = made("p", `${label} wants ${asked.tool.name} ${JSON.stringify(asked.tool.args)} `, { className: "approval" });
  box.append(button("Approve", resolve("approved")), button("Deny", resolve("denied")));
  return box;
}

/** Fills a list; what is in it already stays, so that a button that is being pressed is not made anew. */
function list(path, items, make) {
  const box = find(path);
  const known = new Map([...box.children].map((line) => [line.dataset.of, line]));
  const lines = [...items].map(([key, item]) => known.get(key) ?? make([key, item]));
  for (const line of known.values()) if (!lines.includes(line)) line.remove();
  for (const [n, key] of [...items.keys()].entries()) {
    if (!known.has(key)) box.append(lines[n]);
    lines[n].dataset.of = key;
  }
}

function draw() {
  if (!session || !session.run || session.waiting) return;
  const { run, story, cursor } = session;
  const nodes = Object.values(run.nodes);
  choose(find("[name=session]"), runs.map((one) => [one.id, one.id.slice(0, 8)]));
  find("[name=session]").value = run.id;
  find("#status").textContent = run.status;
  find("[name=earlier]").hidden = cursor === null;
  for (const name of ["from", "to"]) choose(find(`[name=${name}]`), nodes.map((node) => [node.id, node.label]));
  for (const box of find("main").querySelectorAll("article")) if (!run.nodes[box.id.slice(2)]) box.remove();
  nodes.forEach(drawNode);
  const label = (id) => run.nodes[id]?.label ?? id;
  const drawEdge = ([, edge]) => {
    const line = made("li", `${label(edge.from)} to ${label(edge.to)} `);
    line.append(button("Cut", () => call("DELETE", `/api/runs/${run.id}/edges/${edge.id}`)));
    return line;
  };
  list("#edges", story.edges, drawEdge);
  list("#approvals", story.approvals, drawApproval);
}

find("[name=session]").onchange = act(({ target }) => show(target.value));
find("[name=new]").onclick = act(async () => {
  const { run } = await call("POST", "/api/runs", { mode: "INTERACTIVE", globalMode: "IMPLEMENTATION" });
  await show(run.id);
});
find("[name=delete]").onclick = act(async () => {
  await call("DELETE", `/api/runs/${session.run.id}`);
  localStorage.removeItem(ACTIVE);
  await begin();
});
find("[name=play]").onclick = act(() => set({ status: "running" }));
find("[name=pause]").onclick = act(() => set({ status: "paused" }));
find("[name=stop]").onclick = act(() => set({ status: "stopped" }));
find("[name=earlier]").onclick = act(async () => {
  const mine = session;
  lay(mine, await call("GET", `/api/runs/${mine.run.id}/events?limit=${PAGE}&before=${mine.cursor}`));
  draw();
});
document.forms.agent.onsubmit = act(async ({ target: form }) => {
  const all = form.orchestrates.checked;
  const node = {
    label: form.label.value,
    alias: form.label.value.toLowerCase(),
    roleTemplate: form.role.value,
    provider: "custom",
    customSystemPrompt: null,
    capabilities: { edgeManagement: all ? "all" : "none", writeCode: true, writeDocs: true, runCommands: true, delegateOnly: false },
    permissions: { cliPermissionsMode: "skip", agentManagementRequiresApproval: true },
    session: { resume: true, resetCommands: ["/new", "/clear"] },
  };
  await call("POST", `/api/runs/${session.run.id}/nodes`, { node });
  form.label.value = "";
  await place();
});
document.forms.edge.onsubmit = act(async ({ target: form }) => {
  const edge = { id: crypto.randomUUID(), from: form.from.value, to: form.to.value, bidirectional: true, type: "handoff", label: "" };
  await call("POST", `/api/runs/${session.run.id}/edges`, { edge });
});

act(begin)();
