// What the page asks of its server, and how it comes in: the code in the address is traded for a token, once, and taken
// out of the address. The token is this tab's, for as long as it is open.

const KEY = "aynig-token";

export class Failed extends Error {
  constructor(status, { error, code, hint }) {
    super(error || "the server did not say why");
    Object.assign(this, { status, code, hint });
  }
}

/** Trades a code; true where it was good. */
export async function enter(code) {
  const answer = await fetch("/api/enter", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code: code.trim().replace(/^.*#/, "") }),
  });
  if (!answer.ok) return false;
  sessionStorage.setItem(KEY, (await answer.json()).token);
  // Sockets that waited for a token.
  for (const open of outside.splice(0)) open();
  return true;
}

const outside = [];

/** Comes in by the address, where it has a code; true where there is a token. */
export async function arrive() {
  const code = location.hash.slice(1);
  if (/^[0-9a-f]{32}$/.test(code)) {
    history.replaceState(null, "", "/");
    await enter(code);
  }
  return sessionStorage.getItem(KEY) !== null;
}

let leave = () => {};
/** Told once the token is no longer good. */
export const onLeave = (told) => (leave = told);

async function ask(method, path, body) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Failed(0, { error: "the server does not answer", code: "gone", hint: "git aynig serve" });
  }
  if (answer.ok) return answer;
  const why = await answer.json().catch(() => ({}));
  if (answer.status === 401) {
    sessionStorage.removeItem(KEY);
    leave();
  }
  throw new Failed(answer.status, why);
}

const at = (repo, branch, part, query = {}) => {
  const name = branch === undefined ? "" : `/${encodeURIComponent(branch)}`;
  return `/api/branches${name}${part ? `/${part}` : ""}?${new URLSearchParams({ repo, ...query })}`;
};

export const version = async () => (await ask("GET", "/api/version")).json();
export const branches = async (repo) => (await ask("GET", at(repo))).json();
export const events = async (repo, branch, query) => (await (await ask("GET", at(repo, branch, "events", query))).json()).events;
export const diff = async (repo, branch, run) => (await ask("GET", at(repo, branch, "diff", run ? { run } : {}))).json();
export const questions = async (repo) => (await (await ask("GET", `/api/questions?repo=${repo}`)).json()).questions;
export const pauses = async (repo) => (await (await ask("GET", `/api/pauses?repo=${repo}`)).json()).pauses;
export const askedAbout = async (repo, id) => (await ask("GET", `/api/questions/${encodeURIComponent(id)}/diff?repo=${repo}`)).json();
export const usage = async (repo, by) => (await ask("GET", `/api/usage?${new URLSearchParams({ repo, by })}`)).json();
export const post = async (repo, name, body) => (await ask("POST", `/api/${name}?repo=${repo}`, body)).json();
export const call = async (method, path, body) => (await ask(method, path, body)).json();
export const verb = async (repo, branch, name, body) => (await ask("POST", at(repo, branch, name), body)).json();

/** A piece of a log: its bytes, the log's name, where the piece begins and how long the log is. */
export async function log(repo, branch, query) {
  const answer = await ask("GET", at(repo, branch, "logs", query));
  const number = (name) => Number(answer.headers.get(name));
  return {
    name: answer.headers.get("aynig-log"),
    from: number("aynig-from"),
    size: number("aynig-size"),
    bytes: new Uint8Array(await answer.arrayBuffer()),
  };
}

const socket_at = (path) => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;

/** Follows a run's events from where it is, and comes back to where it was; the answer ends it. */
export function follow(run, since, told) {
  let wait = 250;
  let over = false;
  let socket = null;
  const open = () => {
    const token = sessionStorage.getItem(KEY);
    if (over) return;
    if (token === null) return void outside.push(open);
    socket = new WebSocket(socket_at(`/ws?${new URLSearchParams({ runId: run, since: since() })}`), ["aynig", `token.${token}`]);
    socket.onopen = () => (wait = 250);
    socket.onmessage = (message) => told(JSON.parse(message.data));
    socket.onclose = () => {
      setTimeout(open, wait);
      wait = Math.min(wait * 2, 5000);
    };
  };
  open();
  return () => {
    over = true;
    if (socket) socket.close();
  };
}

/** Hears of changes, and comes back by itself: `told` gets each change, `state` whether there is a connection. */
export function listen(told, state) {
  let wait = 250;
  const open = () => {
    const token = sessionStorage.getItem(KEY);
    if (token === null) return void outside.push(open);
    const socket = new WebSocket(socket_at("/api/socket"), ["aynig", `token.${token}`]);
    socket.onopen = () => {
      wait = 250;
      state(true);
      // What happened meanwhile was not heard.
      told({ repo: null, heads: true, logs: true });
    };
    socket.onmessage = (message) => told(JSON.parse(message.data));
    socket.onclose = () => {
      state(false);
      // A server that was started anew knows this token no longer: that is told by an answer, not by a socket.
      version().catch(() => {});
      setTimeout(open, wait);
      wait = Math.min(wait * 2, 5000);
    };
  };
  open();
}
