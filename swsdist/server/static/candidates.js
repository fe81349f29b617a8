/** Words that `discover` found: each heard, named, and taken into the glossary, or set aside. */

import { change, get } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { searchEntry } from "./entry.js";
import { subscribe } from "./events.js";
import { VERDICTS } from "./hit.js";
import { attempt, say } from "./notices.js";
import { currentView } from "./routes.js";
import { playPlace } from "./sounds.js";
import { keyMark, length, number, t, tn } from "./texts.js";
import { entryNamed, readEntries } from "./word.js";

/** The text of how sure a class is, by the first of the words that say so. */
const ALIKE = { very: "candidates.very", alike: "candidates.quite", somewhat: "candidates.somewhat" };

let rows = []; // {found, heard (how many of its places), element, name, buttons}
let current = null;

export function startCandidates() {
  byId("candidates-more").addEventListener("click", () => attempt(() => read(rows.length)));
  subscribe("state", ({ classes }) => (byId("to-candidates").hidden = !classes));
  subscribe("undone", readAgain);
  subscribe("followed", readAgain);
}

function readAgain() {
  if (currentView() === "candidates") attempt(() => read(0));
}

async function read(offset) {
  const { classes, total } = await get("classes", { offset });
  rows = [...rows.slice(0, offset), ...classes.map(made)];
  current = rows.find(({ found }) => found.name === current?.found.name) ?? rows.find((row) => !verdictOf(row)) ?? null;
  fill(byId("candidates"), ...rows.map(({ element }) => element));
  byId("candidates-count").textContent = tn("candidates.count", total);
  byId("candidates-more").hidden = rows.length >= total;
  show();
}

function made(found) {
  const row = { found, heard: 0 };
  const label = t("candidates.label", { name: found.name });
  row.name = el("input.form", {
    type: "text", autocomplete: "off", spellcheck: false, placeholder: t("candidates.name"), value: found.entry?.form ?? "",
    aria: { label: `${t("candidates.name")}, ${label}` },
  });
  row.buttons = VERDICTS.filter(([verdict]) => verdict !== "unsure").map(([verdict, key, sign]) => el("button", {
    type: "button", data: { verdict }, aria: { keyshortcuts: key }, on: { click: () => judge(row, verdict) },
  }, `${sign} `, t(`verdict.${verdict}`), keyMark(key)));
  row.play = el("button.play", { type: "button", on: { click: () => play(row) } });
  row.search = el("button.plain", { type: "button", on: { click: () => searchEntry(row.found.entry.entry_id) } },
    t("entry.search"));
  const { occurrences, speakers, seconds, alike } = found;
  const facts = [tn("candidates.occurrences", occurrences), speakers ? tn("candidates.speakers", speakers) : null, length(seconds),
    t(ALIKE[alike.split(" ")[0]])];
  row.element = el("li.candidate", { aria: { label }, on: { focusin: () => current !== row && setCurrent(row) } },
    row.play, row.name, el("div.verdicts", { attr: { role: "group" }, aria: { label: t("hit.verdict") } }, ...row.buttons),
    el("span.quiet.small.facts", {}, facts.filter(Boolean).join(" · ")), row.search);
  return row;
}

/** "yes" where an entry has a place of it, "no" where it was set aside, else null. */
function verdictOf({ found }) {
  return found.entry ? "yes" : found.aside ? "no" : null;
}

function setCurrent(row) {
  current = row;
  show();
}

function show() {
  for (const row of rows) {
    const verdict = verdictOf(row);
    row.element.dataset.verdict = verdict ?? "";
    row.element.classList.toggle("current", row === current);
    row.element.tabIndex = row === current ? 0 : -1;
    row.search.hidden = verdict !== "yes";
    row.name.disabled = verdict === "yes";
    for (const button of row.buttons) button.setAttribute("aria-pressed", String(button.dataset.verdict === verdict));
    const at = { n: number(Math.max(1, row.heard)), of: number(row.found.places.length) };
    row.play.replaceChildren("▶ ", t("candidates.at", at));
    row.play.setAttribute("aria-label", t("candidates.play", { ...at, name: row.found.name }));
  }
}

/** Play a place of it: the surest first, the next each time, by turns of speakers. */
function play(row) {
  const { places } = row.found;
  row.heard = (row.heard % places.length) + 1;
  setCurrent(row);
  playPlace(`candidate ${row.found.name} ${row.heard}`, places[row.heard - 1], { pad: 0.3, around: 0.1 });
}

function reach(row) {
  setCurrent(row);
  row.element.focus({ preventScroll: true });
  row.element.scrollIntoView({ block: "nearest" });
}

/** Move by so many rows. */
export function moveBy(step) {
  const at = rows.indexOf(current);
  if (rows.length) reach(rows[Math.min(rows.length - 1, Math.max(0, at + step))]);
}

/** Play the current row. */
export function playCurrent() {
  if (current) play(current);
}

/** Judge the current row by a key. */
export function judgeCurrent(verdict) {
  if (current) judge(current, verdict);
}

/** Name the current row. */
export function noteCurrent() {
  current?.name.focus();
}

/** "yes" makes an entry with the place that was heard last as its example; "no" sets it aside, and once more takes it back. */
async function judge(row, verdict) {
  const { found } = row;
  setCurrent(row);
  if (found.entry) return;
  await attempt(async () => {
    if (verdict === "yes") {
      const entry = await entryNamed(row.name.value);
      const place = found.places[Math.max(1, row.heard) - 1];
      await change("POST", `entries/${entry.entry_id}/tokens`, { place, verdict, example: true });
      found.entry = { entry_id: entry.entry_id, form: entry.form };
      row.name.value = entry.form;
      await readEntries();
    } else {
      await change("POST", "classes", { key: found.key, aside: !found.aside });
      found.aside = !found.aside;
    }
    say(t("entry.kept"), { seen: false });
    const next = rows.slice(rows.indexOf(row) + 1).find((other) => !verdictOf(other));
    if (verdictOf(row) && next) reach(next);
    else show();
  });
}
