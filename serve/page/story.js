// What is known of a flow: its state, and each node's conversation, made of one event after the other. What was before the
// page that it began with is laid before that, a page at a time.

/** Most lines of a node that are kept, which are no message. */
const LOGS = 50;
/** Most events that are kept of what is not read. */
const HELD_MAX = 5000;

const fresh = () => ({ items: [], open: null, logs: [] });

/** A flow as its events make it. */
export class Story {
  constructor(run) {
    this.run = run;
    this.chats = new Map();
    this.approvals = new Map();
    this.evidence = null;
    this.seen = new Set();
    this.seq = 0;
    /** Where the history that is known begins; none where that is its beginning. */
    this.cursor = null;
    /** How many events it is made of. */
    this.held = 0;
    /** How many it began with. */
    this.begun = 0;
  }

  /** A story that begins with this page, the latest. */
  static of(run, history) {
    const made = new Story(run);
    history.events.forEach((event) => made.take(event, true));
    made.seq = Number(history.page.last);
    made.cursor = history.page.nextCursor;
    made.begun = made.held;
    return made;
  }

  /** Calls that wait for a person, however long ago they were asked for. */
  waits(approvals) {
    for (const { approval: { approvalId: id, nodeId: node, tool, context } } of approvals) {
      if (!this.approvals.has(id)) this.approvals.set(id, { id, node, tool, context });
    }
  }

  /** Lays the page before: it begins nothing that this one goes on with. */
  lay(history) {
    const before = Story.of(this.run, history);
    for (const [node, { items, logs, open }] of before.chats) {
      if (open) before.close(node, { ended: "interrupted" });
      const chat = this.chat(node);
      const known = new Set(chat.items.map((item) => item.key));
      chat.items = [...items.filter((item) => !known.has(item.key)), ...chat.items];
      chat.logs = [...logs, ...chat.logs].slice(-LOGS);
    }
    this.approvals = new Map([...before.approvals, ...this.approvals]);
    this.cursor = before.cursor;
    this.held += before.held;
  }

  /** True where so much is kept that the latest page is enough again: much more than that page is. */
  isLong() {
    return this.held > Math.max(HELD_MAX, 2 * this.begun);
  }

  /** Goes on from a story of the latest, and from what was heard since that was asked for: of the rest nothing is kept. */
  become(made, heard) {
    for (const event of heard) if (event.seq > made.seq) made.take(event);
    for (const [node, { items }] of this.chats) {
      const there = made.chat(node).items;
      there.push(...items.filter((item) => (item.sends || item.waits) && !there.some((other) => other.id && other.id === item.id)));
    }
    const { chats, seen, cursor, held, begun } = made;
    Object.assign(this, { chats, seen, cursor, held, begun });
  }

  chat(node) {
    if (!this.chats.has(node)) this.chats.set(node, fresh());
    return this.chats.get(node);
  }

  /** The message that is being said; a new one where none is. */
  saying(node) {
    const chat = this.chat(node);
    if (!chat.open) {
      chat.open = { kind: "agent", key: this.event, text: "", thought: "", open: true, at: this.at };
      chat.items.push(chat.open);
    }
    return chat.open;
  }

  close(node, how) {
    const chat = this.chat(node);
    if (!chat.open) return;
    Object.assign(chat.open, { open: false, ...how });
    chat.open = null;
  }

  /** A person's own words, as soon as they are sent. */
  mine(node, text) {
    const item = { kind: "user", key: `own ${Math.random()}`, text, sends: true, at: new Date().toISOString() };
    this.chat(node).items.push(item);
    return item;
  }

  /** They were taken, by this name: what says them may have been told before. */
  taken(node, item, id) {
    item.sends = false;
    if (this.chat(node).items.some((other) => other.id === id)) return this.unsaid(node, item);
    Object.assign(item, { id, waits: true });
  }

  /** They were refused. */
  unsaid(node, item) {
    const { items } = this.chat(node);
    const at = items.indexOf(item);
    if (at >= 0) items.splice(at, 1);
  }

  tool(node, tool, what) {
    const items = this.chat(node).items;
    let card = items.find((item) => item.kind === "tool" && item.id === tool.id);
    if (!card) items.push((card = { kind: "tool", key: tool.id, id: tool.id }));
    Object.assign(card, { name: tool.name, args: tool.args }, what);
  }

  /** Takes an event; what history says of the state is in the state already. */
  take(event, old = false) {
    if (this.seen.has(event.id)) return;
    this.seen.add(event.id);
    this.held += 1;
    this.at = event.ts;
    this.event = event.id;
    if (event.seq) this.seq = Math.max(this.seq, event.seq);
    const node = event.nodeId;
    const { run } = this;
    switch (event.type) {
      case "run.patch":
        if (old) break;
        for (const [key, value] of Object.entries(event.patch)) {
          const laid = ["nodes", "nodeConfigs", "edges", "artifacts"].includes(key);
          run[key] = laid ? { ...run[key], ...value } : value;
        }
        break;
      case "run.mode":
        if (!old) Object.assign(run, event.mode && { mode: event.mode }, event.globalMode && { globalMode: event.globalMode });
        break;
      case "run.stalled":
        if (!old) Object.assign(run, { status: "paused" });
        this.evidence = event.evidence;
        break;
      case "node.patch":
        if (!old && (run.nodes[node] || event.patch.label)) run.nodes[node] = { ...run.nodes[node], ...event.patch };
        if (event.patch.status && event.patch.status !== "running") this.close(node, { ended: "interrupted" });
        break;
      case "node.progress":
        if (!old && run.nodes[node]) Object.assign(run.nodes[node], { status: event.status, summary: event.summary });
        if (event.status !== "running") this.close(node, { ended: "interrupted" });
        break;
      case "node.deleted":
        if (old) break;
        delete run.nodes[node];
        for (const [id, edge] of Object.entries(run.edges)) if (edge.from === node || edge.to === node) delete run.edges[id];
        break;
      case "edge.created":
        if (!old) run.edges[event.edge.id] = event.edge;
        break;
      case "edge.deleted":
        if (!old) delete run.edges[event.edgeId];
        break;
      case "handoff.sent":
        this.chat(event.envelope.toNodeId).items.push({ kind: "handoff", key: event.id, id: event.id, from: event.envelope.fromNodeId, text: event.envelope.payload.message, at: event.ts });
        break;
      case "message.user": {
        const items = this.chat(event.message.nodeId).items;
        const own = items.find((item) => item.id === event.message.id);
        if (own) own.waits = false;
        else items.push({ kind: "user", key: event.message.id, id: event.message.id, text: event.message.content, at: event.ts });
        break;
      }
      case "message.assistant.delta":
        this.saying(node).text += event.delta;
        break;
      case "message.assistant.thinking.delta":
        this.saying(node).thought += event.delta;
        break;
      case "message.assistant.thinking.final":
        this.saying(node).thought = event.content;
        break;
      case "message.assistant.final":
        this.saying(node).text = event.content;
        this.close(node, { ended: event.status === "interrupted" ? "interrupted" : null });
        break;
      case "tool.proposed":
        this.tool(node, event.tool, { state: "proposed" });
        break;
      case "tool.started":
        this.tool(node, event.tool, { state: "runs" });
        break;
      case "tool.completed": {
        const card = this.chat(node).items.find((item) => item.id === event.toolId);
        if (card) Object.assign(card, { state: event.result.ok ? "done" : "failed", output: event.result.output ?? event.error?.message });
        break;
      }
      case "approval.requested":
        this.approvals.set(event.approvalId, { id: event.approvalId, node, tool: event.tool, context: event.context });
        break;
      case "approval.resolved":
        this.approvals.delete(event.approvalId);
        break;
      case "artifact.created":
        if (!old) run.artifacts[event.artifact.id] = event.artifact;
        break;
      case "node.log":
        this.chat(node).logs = [...this.chat(node).logs, event.line].slice(-LOGS);
        break;
    }
  }
}

/** Where nodes stand: from those that nothing leads to, one column after the other. */
export function placed(run) {
  const nodes = Object.values(run.nodes);
  const leads = (node) => node.roleTemplate.trim().toLowerCase() === "orchestrator";
  const out = new Map(nodes.map((node) => [node.id, []]));
  const into = new Map(nodes.map((node) => [node.id, 0]));
  for (const edge of Object.values(run.edges)) {
    if (!out.has(edge.from) || !out.has(edge.to) || edge.from === edge.to) continue;
    out.get(edge.from).push(edge.to);
    into.set(edge.to, into.get(edge.to) + 1);
  }
  const first = nodes.filter((node) => leads(node) || into.get(node.id) === 0);
  const column = new Map();
  let now = (first.length ? first : nodes.slice(0, 1)).map((node) => node.id);
  for (let at = 0; now.length; at += 1) {
    for (const id of now) column.set(id, at);
    now = [...new Set(now.flatMap((id) => out.get(id)))].filter((id) => !column.has(id));
  }
  // In each column as those stand that lead there, so that lines cross as little as may be.
  const columns = [];
  for (const node of nodes) (columns[column.get(node.id) ?? 0] ??= []).push(node.id);
  const at = new Map();
  columns.forEach((ids, x) => {
    const from = (id) => {
      const rows = nodes.filter((node) => at.has(node.id) && out.get(node.id).includes(id)).map((node) => at.get(node.id).y);
      return rows.length ? rows.reduce((sum, y) => sum + y, 0) / rows.length : 0;
    };
    const wanted = new Map(ids.map((id) => [id, from(id)]));
    ids.sort((a, b) => wanted.get(a) - wanted.get(b)).forEach((id, y) => at.set(id, { x, y }));
  });
  // Shorter columns stand in the middle.
  const most = Math.max(0, ...columns.map((ids) => ids.length));
  columns.forEach((ids) => ids.forEach((id) => (at.get(id).y += (most - ids.length) / 2)));
  return at;
}
