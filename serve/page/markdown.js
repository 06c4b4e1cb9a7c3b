// Markdown of what agents and commands say, as elements of the page: headings, lists, quotes, code, emphasis, links. What
// looks like HTML stays text; a link leads to http or https alone.

import { html } from "./text.js";
import { useMemo } from "./vendor.js";

const INLINE = /(`+)([^`](?:[\s\S]*?[^`])?)\1(?!`)|\*\*([^\s*](?:[^*]*[^\s*])?)\*\*|\*([^\s*](?:[^*]*[^\s*])?)\*|\[([^[\]\n]{1,500})\]\((https?:\/\/[^\s)]{1,2000})\)|(https?:\/\/[^\s<>"')\]]{1,2000})/g;

const Link = (href, text) => html`<a href=${href} target="_blank" rel="noopener noreferrer">${text}</a>`;

/** One line's, or one paragraph's, text. */
function inline(text) {
  const out = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, , code, bold, italic, label, href, bare] = found;
    out.push(text.slice(at, found.index));
    if (code !== undefined) out.push(html`<code>${code}</code>`);
    else if (bold !== undefined) out.push(html`<b>${inline(bold)}</b>`);
    else if (italic !== undefined) out.push(html`<em>${italic}</em>`);
    else if (label !== undefined) out.push(Link(href, label));
    else out.push(Link(bare, bare));
    at = found.index + all.length;
  }
  return [...out, text.slice(at)];
}

// How each kind of block begins, and what its lines lose.
const LIST = /^\s{0,3}(?:[-*+]|(\d{1,9})[.)])\s+/;

// What is nested deeper, or longer, is a plain text: whoever may push can write either.
const DEPTH_MAX = 8;
const LENGTH_MAX = 64 << 10;

function block(lines, depth) {
  const first = lines[0];
  const fence = first.match(/^\s{0,3}(```+|~~~+)/);
  if (fence) {
    const end = lines.findIndex((line, n) => n > 0 && line.trim().startsWith(fence[1]));
    const to = end < 0 ? lines.length : end;
    return [html`<pre class="code" tabindex="0"><code>${lines.slice(1, to).join("\n")}</code></pre>`, to + 1];
  }
  const while_ = (is) => {
    const end = lines.findIndex((line) => !is(line));
    return end < 0 ? lines.length : end;
  };
  if (/^(\t| {4})/.test(first)) {
    const to = while_((line) => /^(\t| {4})/.test(line) || !line.trim());
    return [html`<pre class="code" tabindex="0"><code>${lines.slice(0, to).map((l) => l.replace(/^(\t| {4})/, "")).join("\n").trimEnd()}</code></pre>`, to];
  }
  const heading = first.match(/^#{1,6}\s+(.*)$/);
  if (heading) return [html`<p class="heading"><b>${inline(heading[1])}</b></p>`, 1];
  if (/^>/.test(first) && depth < DEPTH_MAX) {
    const to = while_((line) => /^>/.test(line));
    return [html`<blockquote>${blocks(lines.slice(0, to).map((l) => l.replace(/^>\s?/, "")), depth + 1)}</blockquote>`, to];
  }
  const item = first.match(LIST);
  if (item) {
    const to = while_((line) => LIST.test(line) || /^\s+\S/.test(line));
    const items = [];
    for (const line of lines.slice(0, to)) {
      if (LIST.test(line)) items.push(line.replace(LIST, ""));
      else items[items.length - 1] += `\n${line.trim()}`;
    }
    const list = items.map((text) => html`<li>${inline(text)}</li>`);
    return [item[1] ? html`<ol start=${Number(item[1])}>${list}</ol>` : html`<ul>${list}</ul>`, to];
  }
  const to = Math.max(1, while_((line) => line.trim() && !LIST.test(line) && !/^(```|~~~|>|#{1,6}\s)/.test(line)));
  return [html`<p>${inline(lines.slice(0, to).join("\n"))}</p>`, to];
}

function blocks(lines, depth) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [made, taken] = block(lines.slice(at), depth);
    out.push(made);
    at += taken;
  }
  return out;
}

/** A text, as it was meant; read once, however often it is drawn. */
export function Markdown({ text }) {
  const shown = useMemo(() => {
    if ((text || "").length > LENGTH_MAX) return html`<pre class="plain" tabindex="0">${text}</pre>`;
    return blocks((text || "").split(/\r?\n/).slice(0, 2000), 0);
  }, [text]);
  return html`<div class="markdown">${shown}</div>`;
}
