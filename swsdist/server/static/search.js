/** A search: asked with the word's examples or a text; hits come line by line. */

import { get, lines } from "./api.js";
import { byId } from "./dom.js";
import { emit, subscribe } from "./events.js";
import { narrowed } from "./narrow.js";
import { clearFailures, say, showFailure } from "./notices.js";
import { hitKey, placeOfHit } from "./places.js";
import { server } from "./state.js";
import { t, tn } from "./texts.js";
import { examples, judge, judgement, word } from "./word.js";

/** running, part (0..1), hits (best first), name of the search, summary, seconds, warnings, instead (texts), unsearched (count,
 * names), missing (similar words by word), text, asked (anything yet). */
export const found = nothing();
let stopping = null;

function nothing() {
  const answer = { hits: [], search: null, summary: null, seconds: null, warnings: [], instead: [], unsearched: null, missing: {} };
  return { ...answer, running: false, part: 0, text: null, asked: false };
}

/** Stop the search that runs, and forget its hits. */
export function forget() {
  stopping?.abort();
  stopping = null;
  Object.assign(found, nothing());
  emit("hits");
}

/** Stop the search that runs; what was found stays. */
export function halt() {
  stopping?.abort();
  stopping = null;
  found.running = false;
  say(t("search.halted"));
  emit("hits");
}

/** Search with the examples in use, or with a text. What ran before is stopped. */
export async function search(text = null) {
  const used = examples().filter((example) => example.used);
  if (text === null && !used.length) {
    text = word.text ?? (server.state.kinds.includes("text") ? word.entry?.form : null) ?? null;
    if (text === null) return say(t("search.nothing"));
  }
  forget();
  const body = { narrow: narrowed(), text, speak: byId("text-sound").checked };
  if (word.entry) body.entry_id = word.entry.entry_id;
  else if (text === null) body.examples = used.map((example) => example.place);
  if (text !== null && text !== word.text) {
    word.text = text;
    if (!word.entry && !word.draft.form) word.draft.form = text;
    emit("word");
  }
  Object.assign(found, { running: true, asked: true, text });
  stopping = new AbortController();
  const { signal } = stopping;
  say(t("search.begun"), { seen: false });
  emit("hits");
  try {
    await lines("search", body, (line) => signal.aborted || take(line), signal);
    if (signal.aborted) return;
    found.running = false;
    clearFailures("search");
  } catch (error) {
    if (signal.aborted) return;
    Object.assign(found, { running: false, asked: found.hits.length > 0 });
    showFailure(error, () => search(text), "search");
  }
  emit("hits");
}

/** Take a line in; hits that were judged meanwhile stay where they are seen. */
function take(line) {
  const keys = new Set(line.hits.map(hitKey));
  const kept = found.hits.filter((hit) => !keys.has(hitKey(hit)) && judgement(hit));
  found.hits = kept.length ? [...line.hits, ...kept].sort((a, b) => b.score - a.score) : line.hits;
  found.listed = line.hits;
  found.search = line.search ?? found.search;
  found.part = line.part;
  if (line.final) {
    const { likelihood: summary, warnings = [], instead = [], unsearched, missing = {}, seconds } = line;
    Object.assign(found, { summary, warnings, instead, unsearched, missing, seconds, running: false });
    say(tn("search.done", found.hits.length), { seen: false });
  }
  emit("hits");
}

/** Judge a hit, and ask how likely the others are now. */
export async function judgeHit(hit, verdict, more = {}) {
  const place = placeOfHit(hit);
  found.summary = (await judge(place, verdict, { score: hit.score, search: found.search, ...more })) ?? found.summary;
  emit("hits");
  readLikely().catch(() => {}); // the next judgement asks again
}

async function readLikely() {
  if (!word.entry || !found.asked) return;
  const name = found.search;
  const { likelihood, likely } = await get("likely", { entry_id: word.entry.entry_id, search: name });
  if (found.search !== name) return;
  found.summary = likelihood ?? found.summary;
  found.listed?.forEach((hit, n) => Object.assign(hit, likely[n]));
  emit("hits");
}

subscribe("opened", forget);
subscribe("undone", () => readLikely().catch(() => {}));
