// Elements as the page writes them: a character that would steer what is read (controls, the direction of writing, what has
// no width) is shown as its number wherever a text becomes a part of the page, as the command line shows it. No screen
// can forget that.

import { html as build } from "./vendor.js";

// Those of `steers` in src/protocol/text.rs, but for the ends of lines and tabulators.
const STEERS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u070f\u180e\ufeff\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]/gu;

const number = (char) => {
  const at = char.codePointAt(0);
  return at < 0x100 ? `\\x${at.toString(16).padStart(2, "0")}` : `\\u{${at.toString(16)}}`;
};

/** A text whose every character is seen. */
export const visible = (text) => text.replace(STEERS, number);

/** The same for JSON that is edited: there it stays the same value. */
export const visibleJson = (json) => json.replace(STEERS, (char) => char.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`));

/** What of an element's attributes is read; what is typed into it, and what names it to the page, stays as it is. */
const READ = ["title", "aria-label", "placeholder"];
const done = new WeakSet();

function shown(part) {
  if (typeof part === "string") return visible(part);
  if (Array.isArray(part)) return part.map(shown);
  if (!part?.props || done.has(part)) return part;
  done.add(part);
  if (part.props.children !== undefined) part.props.children = shown(part.props.children);
  if (typeof part.type === "string") for (const name of READ) if (typeof part.props[name] === "string") part.props[name] = visible(part.props[name]);
  return part;
}

export const html = (...call) => shown(build(...call));
