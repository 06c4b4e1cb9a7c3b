// What runs used and cost: by day, branch, model or state, drawn and as a table.

import { html } from "./text.js";
import { useEffect, useState } from "./vendor.js";
import { Empty, Trouble } from "./parts.js";
import { useAnswer } from "./diff.js";
import * as wire from "./wire.js";

const BY = [["day", "day"], ["branch", "branch"], ["model", "model"], ["state", "state"]];
const MEASURES = [["cost_usd", "cost"], ["input_tokens", "tokens in"], ["output_tokens", "tokens out"], ["runs", "runs"]];

const number = (n) => (n ?? 0).toLocaleString();
const money = (n) => (n === null || n === undefined ? "–" : `$${n < 0.01 && n > 0 ? n.toFixed(4) : n.toFixed(2)}`);
const shown = (key, n) => (key === "cost_usd" ? money(n) : number(n));

const HIGH = 180;
const BARS_MAX = 40;

/** Bars, one a name; their numbers stand in the table below. */
function Chart({ rows, measure, by }) {
  const bars = by === "day" ? rows.slice(-BARS_MAX) : rows.slice(0, BARS_MAX);
  const most = Math.max(...bars.map((row) => row[measure] ?? 0));
  if (!(most > 0)) return null;
  const wide = 720 / bars.length;
  const label = MEASURES.find(([key]) => key === measure)[1];
  return html`<figure class="chart"><span class="dim">${shown(measure, most)}</span><svg viewBox="0 0 720 ${HIGH + 2}" role="img" aria-label=${`${label} by ${by}; the table below says the same`}>
    <line x1="0" y1=${HIGH} x2="720" y2=${HIGH} class="axis" />
    ${bars.map((row, n) => {
      const high = ((row[measure] ?? 0) / most) * (HIGH - 2);
      return html`<g key=${row.name ?? ""}><title>${row.name ?? "none"}: ${shown(measure, row[measure])}</title>
        <rect x=${n * wide + wide * 0.12} y=${HIGH - high} width=${Math.min(wide * 0.76, 64)} height=${high} rx="2" /></g>`;
    })}
  </svg><figcaption><span>${bars[0].name ?? "none"}</span>${bars.length > 1 && html`<span>${bars[bars.length - 1].name ?? "none"}</span>`}</figcaption></figure>`;
}

export function Usage({ repo, tick }) {
  const [by, setBy] = useState("day");
  const [measure, setMeasure] = useState("cost_usd");
  const { value, error } = useAnswer(() => wire.usage(repo, by), [repo, by, tick]);
  const lines = value ? value.usage : [];
  const total = lines.find((line) => line.by === "total");
  const rows = lines.filter((line) => line.by !== "total" && line.by === by);
  const priced = total && total.cost_usd !== null;
  useEffect(() => {
    if (total && total.runs && !priced && measure === "cost_usd") setMeasure("output_tokens");
  }, [value]);
  if (error) return html`<${Trouble} error=${error} />`;
  if (!value) return null;
  if (!total || !total.runs) {
    return html`<${Empty} title="No run has said yet what it used." commands=${[["", `echo '{"type":"usage","input_tokens":1200,"output_tokens":300,"cost_usd":0.02}' >> "$AYNIG_EVENTS"`]]}><p>A command says it in its declaration, or as it works:</p><//>`;
  }
  return html`<div class="tools"><label>By <select name="by" value=${by} onChange=${(e) => setBy(e.target.value)}>${BY.map(([id, label]) => html`<option key=${id} value=${id}>${label}</option>`)}</select></label>
      <label>Drawn <select name="measure" value=${measure} onChange=${(e) => setMeasure(e.target.value)}>${MEASURES.map(([id, label]) => html`<option key=${id} value=${id} disabled=${id === "cost_usd" && !priced}>${label}</option>`)}</select></label>
</div>
    <dl class="sums">${[["cost", money(total.cost_usd)], ["runs", number(total.runs)], ["tokens in", number(total.input_tokens)], ["tokens out", number(total.output_tokens)]].map(([what, sum]) => html`<div key=${what}><dt>${what}</dt><dd>${sum}</dd></div>`)}</dl>
    ${total.unpriced > 0 && html`<p class="dim">${number(total.unpriced)} of the runs said no cost.</p>`}
    <${Chart} rows=${rows} measure=${measure} by=${by} />
    <div class="wide" tabindex="0" role="region" aria-label="usage as a table"><table><thead><tr><th scope="col">${by}</th><th scope="col">runs</th><th scope="col">tokens in</th><th scope="col">tokens out</th><th scope="col">cost</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.name ?? ""}><th scope="row"><bdi>${row.name ?? "none"}</bdi></th><td>${number(row.runs)}</td><td>${number(row.input_tokens)}</td><td>${number(row.output_tokens)}</td><td>${money(row.cost_usd)}</td></tr>`)}</tbody>
      <tfoot><tr><th scope="row">all</th><td>${number(total.runs)}</td><td>${number(total.input_tokens)}</td><td>${number(total.output_tokens)}</td><td>${money(total.cost_usd)}</td></tr></tfoot></table></div>`;
}
