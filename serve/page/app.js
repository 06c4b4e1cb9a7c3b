// The page: which screen is shown, what is known of the branches, and what keeps that true.

import { html, visible } from "./text.js";
import { render, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor.js";
import { Apart, Command, Said, Trouble, isRunning } from "./parts.js";
import { Branches, Needs, Running, waitingBranches } from "./screens.js";
import { Branch } from "./branch.js";
import { Flow, Flows } from "./flow.js";
import { PauseAll, Pauses } from "./say.js";
import { Usage } from "./usage.js";
import * as wire from "./wire.js";

const SCREENS = [["needs", "Needs you", "n"], ["running", "Running", "r"], ["branches", "Branches", "b"], ["flow", "Flows", "f"], ["usage", "Usage", "u"]];

/** A name out of an address that may have been typed. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The screen that the address names. */
function where() {
  const [, screen, repo, name, tab] = location.hash.split("/");
  if (screen === "branch" && name !== undefined) return { screen, repo: Number(repo) || 0, name: decoded(name), tab };
  if (screen === "flow") return { screen, run: repo, node: name };
  return { screen: SCREENS.some(([id]) => id === screen) ? screen : "needs" };
}

/** The tab's title and icon say how much waits. */
function announce(waiting) {
  document.title = waiting ? `(${waiting}) git-aynig` : "git-aynig";
  const many = waiting > 99 ? "99" : waiting;
  const dot = waiting ? `<circle cx='8' cy='8' r='8' fill='%23a1260d'/><text x='8' y='11.5' font-family='sans-serif' font-size='${many > 9 ? 9 : 11}' font-weight='bold' text-anchor='middle' fill='white'>${many}</text>` : "<circle cx='8' cy='8' r='6' fill='none' stroke='%23777' stroke-width='2'/>";
  document.querySelector("link[rel=icon]").href = `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>${dot}</svg>`;
}

const Mark = () => html`<svg class="mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true"><path d="M5 6.5v7M5 10c6 0 9-.5 9-3.5" /><circle cx="5" cy="4.5" r="2.2" /><circle cx="5" cy="15.5" r="2.2" /><circle cx="14.5" cy="4.5" r="2.2" /></svg>`;

function Door({ onIn }) {
  const [code, setCode] = useState("");
  const [wrong, setWrong] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    const good = await wire.enter(code).catch(() => false);
    setWrong(!good);
    if (good) onIn();
  };
  return html`<main class="door"><div class="panel"><h1><${Mark} />git-aynig</h1>
    <p>This tab needs the code of the server that runs now.</p>
    <form onSubmit=${send}><label>Code, or the whole address <input name="code" autocomplete="off" autofocus spellcheck=${false} required value=${code} onInput=${(e) => setCode(e.target.value)} /></label>
      <button class="main">Come in</button></form>
    <p class="dim">It stands at the end of the address that <code>git aynig serve</code> printed, behind the <code>#</code>. Each one is good once.</p>
    ${wrong && html`<p role="alert" class="trouble">This code is not, or no longer, good. Start <code>git aynig serve</code> again for another one.</p>`}</div></main>`;
}

/** Tells of what waits anew, where that was allowed and the page is not looked at. */
function tell(fresh) {
  if (!fresh.length || !document.hidden || !window.Notification || Notification.permission !== "granted") return;
  const [first] = fresh;
  const more = fresh.length > 1 ? ` and ${fresh.length - 1} more` : "";
  const shown = new Notification(visible(`${first.branch}${more}`), { body: visible((first.text ?? first.why ?? first.subject ?? "").slice(0, 200)), tag: "aynig" });
  shown.onclick = () => { focus(); location.hash = "#/needs"; };
}

const HELP = [["Screens", [["n", "Needs you"], ["r", "Running"], ["b", "Branches"], ["f", "Flows"], ["u", "Usage"]]],
  ["Anywhere", [["j k", "next, previous branch"], ["/", "search branches"], ["Ctrl Enter", "send what is written"], ["Esc", "close, leave it"], ["?", "these keys"]]],
  ["In a difference", [["↓ ↑", "line after line"], ["Enter", "comment on it"]]]];

function Help({ onClose }) {
  const close = useRef(null);
  useLayoutEffect(() => {
    // A dialog proper keeps the focus inside, and gives it back.
    close.current.showModal();
  }, []);
  return html`<dialog aria-label="keys" class="help" ref=${close} onClose=${onClose} onClick=${(e) => e.target === close.current && onClose()}><div class="panel"><h2>Keys</h2>
    ${HELP.map(([title, keys]) => html`<h3 key=${title}>${title}</h3><dl>${keys.map(([key, what]) => html`<div key=${key}><dt>${key.split(" ").map((one) => html`<kbd key=${one}>${one}</kbd>`)}</dt><dd>${what}</dd></div>`)}</dl>`)}
    <button type="button" onClick=${onClose}>Close</button></div></dialog>`;
}

function toContent() {
  document.getElementById("main").focus({ preventScroll: true });
}

/** Where what had the focus is gone, the content has it: the next key goes on from there. */
function useFocusKept() {
  const last = useRef(null);
  useEffect(() => {
    const came = (event) => (last.current = event.target);
    addEventListener("focusin", came);
    return () => removeEventListener("focusin", came);
  }, []);
  useEffect(() => {
    if (document.activeElement === document.body && last.current && !last.current.isConnected) toContent();
  });
}

function step(by) {
  const links = [...document.querySelectorAll("main a.name")];
  const at = links.indexOf(document.activeElement);
  const next = links[Math.min(links.length - 1, Math.max(0, at + by))];
  if (next) next.focus();
}

function House() {
  const [place, setPlace] = useState(where);
  const [about, setAbout] = useState(null);
  const [repo, setRepo] = useState(0);
  const [known, setKnown] = useState(null);
  const [error, setError] = useState(null);
  const [connected, setConnected] = useState(true);
  const [tick, setTick] = useState(0);
  const [logTick, setLogTick] = useState(0);
  const [help, setHelp] = useState(false);
  // What became of the last answer: its card is gone by then.
  const [said, setSaid] = useState(null);
  const current = place.repo ?? repo;
  const shown = useRef(current);
  shown.current = current;
  const asking = useRef(null);

  // One question at a time; what changes meanwhile is asked about after it.
  const read = useCallback(async () => {
    if (asking.current) return (asking.current.again = true);
    const mine = (asking.current = { again: false });
    do {
      mine.again = false;
      const of = shown.current;
      try {
        const [said, branches, questions, pauses] = await Promise.all([wire.version(), wire.branches(of), wire.questions(of), wire.pauses(of)]);
        if (of !== shown.current) mine.again = true;
        setAbout(said);
        setKnown({ repo: of, questions, pauses, ...branches });
        setError(null);
      } catch (failed) {
        setError(failed);
      }
    } while (mine.again);
    asking.current = null;
    setTick((n) => n + 1);
  }, []);

  useEffect(() => {
    read();
  }, [current]);
  useEffect(() => {
    const moved = () => {
      setPlace(where());
      setHelp(false);
    };
    addEventListener("hashchange", moved);
    // Where it was moved before anything listened.
    moved();
    wire.listen((change) => {
      if (change.repo !== null && change.repo !== shown.current) return;
      // A log's line may be progress, too; the branches are read again where a run tells of itself.
      if (change.heads) read();
      if (change.logs) setLogTick((n) => n + 1);
    }, setConnected);
    return () => removeEventListener("hashchange", moved);
  }, []);
  // A log that grows may have told how far its run is: not more often than each second.
  const lastRead = useRef(0);
  useEffect(() => {
    if (logTick && Date.now() - lastRead.current > 1000) {
      lastRead.current = Date.now();
      read();
    }
  }, [logTick]);
  useEffect(() => {
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(input|textarea|select)$/i.test(event.target.tagName)) {
        // A form that closes by it is gone by now, and gave the focus back.
        if (event.key === "Escape" && event.target.isConnected) toContent();
        return;
      }
      const screen = SCREENS.find(([, , key]) => key === event.key);
      if (screen) location.hash = `#/${screen[0]}`;
      else if (event.key === "?") setHelp((open) => !open);
      else if (event.key === "Escape") setHelp(false);
      else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
      else if (event.key === "/") {
        event.preventDefault();
        location.hash = "#/branches";
        setTimeout(() => document.querySelector("input[name=search]")?.focus(), 50);
      } else return;
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  const branches = known && known.repo === current ? known.branches : null;
  const questions = branches ? known.questions : [];
  const wanting = branches ? [...questions, ...waitingBranches(branches, questions)] : [];
  const waiting = wanting.length;
  const running = branches ? branches.filter(isRunning).length : 0;
  useEffect(() => announce(waiting), [waiting]);
  // What waited when the page was opened is no news.
  const told = useRef(null);
  useEffect(() => {
    if (!branches) return;
    const key = (one) => one.id ?? `${one.branch} ${one.commit}`;
    if (told.current) tell(wanting.filter((one) => !told.current.has(key(one))));
    told.current = new Set(wanting.map(key));
  }, [known]);
  const policy = about && about.repos[current] && about.repos[current].policy;
  const can = about && !about.read_only && policy && policy.trusted;
  const verb = async (repo, branch, name, body) => {
    const answers = name === "answer";
    try {
      const written = await wire.verb(repo, branch, name, body);
      await read();
      if (answers) setSaid({ repo, branch, choice: body.choice });
      return written;
    } catch (failed) {
      // Who came second is told, though the question is gone from the page with the first one's answer.
      if (answers && failed.status === 409) {
        setSaid({ repo, branch, failed });
        await read();
      }
      throw failed;
    }
  };
  const counts = { needs: waiting, running, branches: branches ? branches.length : 0 };
  const rest = { branches, questions, repo: current, can, verb, tick, logTick, reread: read };
  useFocusKept();
  const states = useMemo(() => [...new Set((branches ?? []).flatMap((b) => [b.origin_state, b.state]))].filter((s) => s && s !== "working" && s !== "stalled").sort(), [known]);
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); toContent(); }}>To the content</a>
    <header class="top"><h1><a href="#/needs"><${Mark} />git-aynig</a></h1>
      ${about && about.repos.length > 1 && html`<label class="repo"><span class="hide">Repository</span><select name="repo" value=${current} onChange=${(e) => { setRepo(Number(e.target.value)); location.hash = `#/${place.screen === "branch" ? "branches" : place.screen}`; }}>
        ${about.repos.map((r) => html`<option key=${r.id} value=${r.id}>${r.name}</option>`)}</select></label>`}
      ${about && about.repos.length === 1 && html`<span class="repo dim" title=${about.repos[0].folder}>${about.repos[0].name}</span>`}
      <nav aria-label="screens">${SCREENS.map(([id, label]) => html`<a key=${id} href=${`#/${id}`} aria-current=${place.screen === id || (id === "branches" && place.screen === "branch") ? "page" : null}>${label}${id in counts && html` <span class=${id === "needs" && counts[id] ? "count due" : "count"}>${counts[id].toLocaleString()}</span>`}</a>`)}</nav>
      <button type="button" class="keys" aria-label="keys" onClick=${() => setHelp(true)}>?</button></header>
    <div role="status" aria-live="polite" class="news">
      ${!connected && html`<p class="bar off">No connection to the server: trying again. Nothing is lost; what runs goes on.</p>`}
      ${policy && !policy.trusted && html`<p class="bar">Nothing runs here until you say which commands may: <${Command} text=${policy.hint} /></p>`}
      ${branches && html`<${Pauses} pauses=${known.pauses} repo=${current} can=${can} reread=${read} />`}
      ${branches && said && said.repo === current && html`<${Said} ...${said} of=${branches.find((b) => b.branch === said.branch)} onClose=${() => setSaid(null)} />`}
      ${about && about.read_only && html`<p class="bar">You may look, and change nothing.</p>`}</div>
    <main id="main" tabindex="-1">
      ${connected && html`<${Trouble} error=${error} />`}
      ${known && known.failed.length > 0 && html`<${Trouble} error=${{ message: known.failed.map((f) => `${f.branch}: ${f.error}`).join("; ") }} />`}
      ${place.screen !== "branch" && html`<h2 class="hide">${SCREENS.find(([id]) => id === place.screen)[1]}</h2>`}
      <${Apart} key=${`${place.screen} ${place.name ?? place.run ?? ""}`}>
        ${branches && place.screen === "needs" && html`<${Needs} ...${rest} />`}
        ${branches && place.screen === "running" && html`${can && !known.pauses.some((p) => !p.patterns.length) && html`<div class="tools"><${PauseAll} repo=${current} reread=${read} /></div>`}<${Running} ...${rest} />`}
        ${about && place.screen === "flow" && (place.run ? html`<${Flow} key=${place.run} id=${place.run} node=${place.node} ...${rest} />` : html`<${Flows} can=${can} tick=${tick} />`)}
        ${branches && place.screen === "usage" && html`<${Usage} repo=${current} tick=${tick} />`}
        ${branches && place.screen === "branches" && html`<${Branches} ...${rest} />`}
        ${branches && place.screen === "branch" && html`<${Branch} key=${`${current} ${place.name}`} name=${place.name} tab=${place.tab} branch=${branches.find((b) => b.branch === place.name)} ...${rest} />`}
      </${Apart}>
    </main>
    <datalist id="states">${states.map((word) => html`<option key=${word} value=${word} />`)}</datalist>
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}`;
}

/** The house stands on behind the door: what was typed in it is kept. */
function App() {
  const [inside, setInside] = useState(null);
  const [known, setKnown] = useState(false);
  useEffect(() => { if (inside) setKnown(true); }, [inside]);
  useEffect(() => {
    wire.onLeave(() => setInside(false));
    wire.arrive().then(setInside);
  }, []);
  if (inside === null) return null;
  return html`${(inside || known) && html`<div key="house" hidden=${!inside}><${House} /></div>`}${!inside && html`<${Door} key="door" onIn=${() => setInside(true)} />`}`;
}

render(html`<${App} />`, document.getElementById("app"));
