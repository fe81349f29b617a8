/**
 * The word that is worked on: its entry of the glossary (none before it is first judged), tokens and examples.
 *
 * What is judged, and which examples are in use, is read from the tokens alone; they are asked for again after undo and
 * when others changed something.
 */

import { change, get } from "./api.js";
import { choice } from "./choices.js";
import { emit, subscribe } from "./events.js";
import { say } from "./notices.js";
import { sameMoment } from "./places.js";
import { hasText, t } from "./texts.js";

/**
 * entry: Entry or null; tokens; loose: examples {place, name, used} that no entry has yet; draft: what is typed for a new one;
 * text: searched last.
 */
export const word = { entry: null, tokens: [], loose: [], draft: { form: "", gloss: "" }, text: null };
/** All entries of the glossary. */
export const glossary = { entries: [] };

let making = null;
let begun = false;
let turn = Promise.resolve();

/** Do one thing after the other, as they were begun, so that undo takes back what was done last. */
function inTurn(work) {
  const done = turn.then(work);
  turn = done.catch(() => {});
  return done;
}

export async function readEntries() {
  glossary.entries = (await get("entries")).entries;
  if (word.entry) word.entry = glossary.entries.find((entry) => entry.entry_id === word.entry.entry_id) ?? null;
  emit("entries");
}

export async function readTokens() {
  const id = word.entry?.entry_id;
  const tokens = id === undefined ? [] : (await get(`entries/${id}/tokens`)).tokens;
  if (word.entry?.entry_id === id) word.tokens = tokens;
  emit("word");
}

/** Begin with no word, or open an entry. */
export async function openWord(entryId = null) {
  if (entryId !== null && !glossary.entries.some((entry) => entry.entry_id === entryId)) await readEntries();
  word.entry = glossary.entries.find((entry) => entry.entry_id === entryId) ?? null;
  const kept = begun || word.entry ? null : sessionStorage.getItem("word");
  begun = true;
  Object.assign(word, { tokens: [], text: null, loose: [], draft: { form: "", gloss: "" }, ...(kept && JSON.parse(kept)) });
  emit("opened");
  await readTokens();
}

/** The entry of the word, made now if there is none; its examples go with it. */
export function needEntry() {
  if (word.entry) return Promise.resolve(word.entry);
  making ??= makeEntry().finally(() => (making = null));
  return making;
}

async function makeEntry() {
  const entry = await entryNamed(word.draft.form, word.draft.gloss);
  word.entry = entry;
  const loose = word.loose.splice(0);
  for (const { place, used } of loose) {
    await change("POST", `entries/${entry.entry_id}/tokens`, { place, verdict: "yes", example: used });
  }
  await readEntries();
  await readTokens();
  say(t("word.made", { form: entry.form }));
  emit("made", entry);
  return word.entry;
}

/** The entry of a form, made now if there is none; without a form that of a number. */
export async function entryNamed(form, gloss = "") {
  const named = form.trim() || nameless();
  return entryOf(named) ?? change("POST", "entries", { form: named, gloss });
}

/** The entry of this form, if the glossary has it. */
export function entryOf(form) {
  return glossary.entries.find((entry) => entry.form === form.trim());
}

/** Whether a text asks for another word than the open one, which is called as what was searched before. */
export function asksForAnother(text) {
  const names = [word.entry?.form ?? word.draft.form.trim(), ...(word.entry?.variants ?? [])].map((name) => name.toLowerCase());
  const before = word.text ?? word.entry?.form ?? null;
  return before !== null && names.includes(before.toLowerCase()) && !names.includes(text.toLowerCase());
}

/** A form for a word that has none yet: the first number that is free. */
function nameless() {
  for (let n = 1; ; n++) {
    const form = t("word.nameless", { n });
    if (!entryOf(form)) return form;
  }
}

/** Examples of the word: {place, name, used, token}. */
export function examples() {
  const confirmed = word.tokens.filter((token) => token.verdict === "yes");
  const known = confirmed.map((token) => ({ place: token.place, name: nameOf(token), used: token.example, token }));
  return [...known, ...word.loose];
}

export async function addExample(place, name) {
  if (word.entry) {
    await change("POST", `entries/${word.entry.entry_id}/tokens`, { place, verdict: "yes", example: true });
    await Promise.all([readTokens(), readEntries()]);
  } else {
    word.loose.push({ place, name, used: true });
    emit("word");
  }
}

/** Use an example in searches, or not. */
export async function useExample(example, used) {
  if (example.token) {
    await change("PATCH", `tokens/${example.token.token_id}`, { example: used });
    await readTokens();
  } else {
    example.used = used;
    emit("word");
  }
}

/** Take an example of a word without an entry away again. */
export function dropExample(example) {
  word.loose = word.loose.filter((other) => other !== example);
  emit("word");
}

/** The token that judges a hit for an entry, if there is one. */
export function judgement(hit, tokens = word.tokens) {
  return tokens.find((token) => sameMoment(token.place, { ...hit, sound: null }, hit.channels));
}

/**
 * Judge a place for the word. A confirmed one becomes an example while fewer than the chosen number are in use.
 * @returns {Promise<object>} the Summary of likelihood
 */
export function judge(place, verdict, more) {
  return inTurn(() => judgeNow(place, verdict, more));
}

async function judgeNow(place, verdict, more) {
  const entry = await needEntry();
  const room = examples().filter((example) => example.used).length < choice("most");
  const body = { place, verdict, ...more, example: verdict === "yes" && room };
  const { token, likelihood } = await change("POST", `entries/${entry.entry_id}/tokens`, body);
  if (word.entry?.entry_id === entry.entry_id) {
    word.tokens = [...word.tokens.filter((other) => other.token_id !== token.token_id), token];
  }
  emit("word");
  readEntries().catch(() => {}); // counts only: the next poll mends them
  return likelihood;
}

/** Take this person's last change back. */
export async function undo() {
  const { change: undone } = await inTurn(() => change("POST", "undo"));
  say(undone ? t("undo.done", { what: changeName(undone) }) : t("undo.nothing"));
  await Promise.all([readEntries(), readTokens()]);
}

/** What the place of a token is called: its recording, or that it is a sound that somebody gave. */
export function nameOf({ recording, place }) {
  return place.sound ? t("examples.sound") : (recording ?? place.doc_id);
}

/** What a change is called; kinds that have no name of their own are the last change. */
export function changeName({ kind }) {
  return t(hasText(`change.${kind}`) ? `change.${kind}` : "change.any");
}

/** Keep a word that has no entry yet while the page is loaded again. */
export function keepDraft() {
  const { loose, draft, text } = word;
  if (word.entry) sessionStorage.removeItem("word");
  else sessionStorage.setItem("word", JSON.stringify({ loose, draft, text }));
}

subscribe("word", keepDraft);
subscribe("changes", () => Promise.all([readEntries(), readTokens()]).catch(() => {}));
