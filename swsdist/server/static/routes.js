/** Which part of the page is shown, kept in the address: #search/ID, #glossary/ID, #candidates, #news. */

import { stop } from "./sounds.js";
import { byId } from "./dom.js";
import { emit } from "./events.js";
import { attempt } from "./notices.js";
import { openWord, word } from "./word.js";

const VIEWS = ["search", "glossary", "candidates", "news"];
const OF_WORDS = ["search", "glossary"];

/** Go to a view, perhaps of an entry. */
export function go(view, entryId = null) {
  location.hash = entryId === null ? view : `${view}/${entryId}`;
}

export function currentView() {
  const view = location.hash.slice(1).split("/")[0];
  return VIEWS.includes(view) ? view : "search";
}

/** Write into the address what word is open, without going anywhere. */
export function noteWord() {
  history.replaceState(null, "", `#${currentView()}/${word.entry.entry_id}`);
  linkWord();
}

function linkWord() {
  const tail = word.entry ? `/${word.entry.entry_id}` : "";
  for (const view of OF_WORDS) byId(`to-${view}`).href = `#${view}${tail}`;
}

let begun = false;

/** Begin a new word, or search an entry: what was tried without a word is forgotten. */
export async function newWord(entryId = null) {
  history.pushState(null, "", entryId === null ? "#search" : `#search/${entryId}`);
  await attempt(() => openWord(entryId));
  await follow();
}

async function follow() {
  const view = currentView();
  stop();
  if (byId(`view-${view}`).hidden) scrollTo(0, 0);
  for (const name of VIEWS) {
    byId(`view-${name}`).hidden = name !== view;
    if (name === view) byId(`to-${name}`).setAttribute("aria-current", "page");
    else byId(`to-${name}`).removeAttribute("aria-current");
  }
  const id = location.hash.split("/")[1];
  const wanted = id ? Number(id) : null;
  const open = word.entry?.entry_id ?? null;
  if (!begun || (OF_WORDS.includes(view) && wanted !== open)) await attempt(() => openWord(wanted));
  begun = true;
  linkWord();
  emit("followed");
}

export async function startRoutes() {
  addEventListener("hashchange", follow);
  await follow();
}
