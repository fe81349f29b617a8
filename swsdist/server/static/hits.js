/** The list of hits, best first or by recording: one of them is the current one, judged by keys. */

import { bindChoice, choice } from "./choices.js";
import { arrange, byId, el } from "./dom.js";
import { subscribe } from "./events.js";
import { HitCard } from "./hit.js";
import { attempt, say, showFailure } from "./notices.js";
import { hitKey } from "./places.js";
import { found, halt, judgeHit, search } from "./search.js";
import { server } from "./state.js";
import { number, percent, t, tn } from "./texts.js";
import { judgement, word } from "./word.js";

const cards = new Map(); // by hitKey
const heads = new Map(); // by recording
let current = null;

const does = { judge: judgeCard, note: noteCard, reached: (card) => current !== card && setCurrent(card) };

export function startHits() {
  bindChoice("grouped", "grouped");
  bindChoice("autoplay", "autoplay");
  byId("halt").addEventListener("click", halt);
  byId("to-word").addEventListener("click", () => byId("word").focus());
  byId("search-again").addEventListener("click", () => search());
  for (const event of ["hits", "word", "choices", "state"]) subscribe(event, show);
  subscribe("opened", () => (current = null));
}

/** Hits in the order in which they are shown: [recording or null, its hits] each. */
function groups() {
  if (!choice("grouped")) return [[null, found.hits]];
  const byRecording = Map.groupBy(found.hits, (hit) => hit.recording);
  return [...byRecording];
}

function cardOf(hit) {
  const key = hitKey(hit);
  if (!cards.has(key)) cards.set(key, new HitCard(hit, does));
  const card = cards.get(key);
  card.hit = hit;
  return card;
}

function show() {
  const wanted = new Set(found.hits.map(hitKey));
  for (const [key, card] of cards) {
    if (wanted.has(key)) continue;
    card.close();
    cards.delete(key);
    if (current === card) current = null;
  }
  const ranks = new Map(found.hits.map((hit, n) => [hit, n + 1]));
  const children = [];
  for (const [recording, hits] of groups()) {
    if (recording !== null) children.push(headOf(recording, hits));
    for (const hit of hits) {
      const card = cardOf(hit);
      current ??= judgement(hit) ? null : card;
      card.show({ rank: ranks.get(hit), token: judgement(hit), current: card === current });
      children.push(card.element);
    }
  }
  byId("hits").classList.toggle("grouped", choice("grouped"));
  arrange(byId("hits"), children);
  showProgress();
}

function headOf(recording, hits) {
  if (!heads.has(recording)) heads.set(recording, el("h3.recording", {}, el("span.name"), el("span.quiet")));
  const head = heads.get(recording);
  head.firstChild.textContent = recording;
  head.lastChild.textContent = tn("hits.count", hits.length);
  return head;
}

function showProgress() {
  byId("results").hidden = !found.asked;
  byId("halt").hidden = !found.running;
  byId("search-again").hidden = found.running || !found.hits.length;
  byId("search-part").hidden = !found.running;
  if (found.part) byId("search-part").value = found.part;
  else byId("search-part").removeAttribute("value");
  const count = tn("hits.count", found.hits.length);
  const running = !found.part && server.state.preparing ? t("hits.preparing") : t("hits.running", { count, part: percent(found.part) });
  const done = t("hits.done", { count, seconds: number(found.seconds ?? 0, 1) });
  const halted = t("hits.halted", { count, part: percent(found.part) });
  byId("hits-count").textContent = found.running ? running : found.part < 1 ? halted : done;
  byId("hits-none").hidden = found.running || found.hits.length > 0 || !found.asked;
  byId("hits-none").textContent = noHits();
  byId("warnings").replaceChildren(...[...found.warnings, ...instead(), ...unsearched()].map((warning) => el("li", {}, warning)));
}

/** What was searched instead of a text that nothing was found of. */
function instead() {
  return found.instead.length ? [t("hits.instead", { text: found.text, texts: found.instead.join(", ") })] : [];
}

/** What it says where nothing was found. */
function noHits() {
  if (word.tokens.some(({ place }) => !place.sound)) return t("hits.none.judged");
  const near = Object.entries(found.missing).filter(([, words]) => words.length);
  const alike = near.map(([word, words]) => t("hits.missing", { word, words: words.join(", ") }));
  return [...alike, t(found.text === null ? "hits.none" : "hits.none.text")].join(" ");
}

/** What was not searched for want of words. */
function unsearched() {
  const { count = 0, names = [] } = found.unsearched ?? {};
  const listed = count > names.length ? [...names, "…"] : names;
  return count ? [tn("hits.unsearched", count, { names: listed.join(", ") })] : [];
}

function ordered() {
  return [...byId("hits").querySelectorAll(".hit")].map((element) => [...cards.values()].find((card) => card.element === element));
}

function setCurrent(card) {
  current = card;
  show();
}

/** Go to a card: it gets the focus, and plays if that was chosen. */
function reach(card) {
  setCurrent(card);
  card.element.focus({ preventScroll: true });
  card.element.scrollIntoView({ block: "nearest" });
  if (choice("autoplay")) card.stretch.play();
}

/** Move by so many hits. */
export function moveBy(step) {
  const list = ordered();
  if (!list.length) return;
  const at = list.indexOf(current);
  reach(list[Math.min(list.length - 1, Math.max(0, at + step))]);
}

/** The likeliest hit that nobody has judged, below the current one if there is one: never by recording. */
function nextUnjudged() {
  const at = found.hits.indexOf(current.hit);
  const next = [...found.hits.slice(at + 1), ...found.hits.slice(0, at)].find((hit) => !judgement(hit));
  return next && cardOf(next);
}

/** Judge the current hit by a key. */
export function judgeCurrent(verdict) {
  if (current) judgeCard(current, verdict);
}

/** Play the current hit; `around`: with its context. */
export function playCurrent(around) {
  current?.stretch.play(around);
}

/** Write a note to the current hit. */
export function noteCurrent() {
  if (current) reach(current);
  current?.note.focus();
}

/** Move the ends of the current hit by keys. */
export function trimCurrent() {
  if (current) reach(current);
  current?.stretch.handles[0].focus();
}

async function judgeCard(card, verdict) {
  const { start, end } = card.stretch;
  const note = card.note.value.trim();
  card.unsaved = verdict;
  setCurrent(card);
  const inList = card.element.contains(document.activeElement) || document.activeElement === document.body;
  const next = nextUnjudged();
  if (next && inList) reach(next);
  try {
    await judgeHit({ ...card.hit, start, end }, verdict, note ? { note } : {});
    card.unsaved = null;
    say(t("hit.said", { verdict: t(`verdict.${verdict}`) }), { seen: false });
  } catch (error) {
    showFailure(error, () => judgeCard(card, verdict));
  }
  show();
}

/** Keep a note: with the verdict if there is one, later with it otherwise. */
async function noteCard(card, note) {
  if (!card.token) return say(t("hit.note.later"));
  const { start, end } = card.stretch;
  await attempt(() => judgeHit({ ...card.hit, start, end }, card.token.verdict, { note }));
}
