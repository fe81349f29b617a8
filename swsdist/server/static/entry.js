/** An entry of the glossary: what is said of the word, kept as it is typed. */

import { change, get } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { subscribe } from "./events.js";
import { attempt, say } from "./notices.js";
import { server } from "./state.js";
import { go } from "./routes.js";
import { search } from "./search.js";
import { day, t } from "./texts.js";
import { showTokens, startTokens } from "./tokens.js";
import { changeName, openWord, readEntries, word } from "./word.js";

const PAST = 200;
const FIELDS = ["form", "gloss", "variants", "speaker", "note"];
let removing = 0;

export function startEntry() {
  startTokens();
  for (const field of FIELDS) byId(`entry-${field}`).addEventListener("change", () => keep(field));
  byId("entry-search").addEventListener("click", () => searchEntry(word.entry.entry_id));
  byId("entry-remove").addEventListener("click", remove);
  byId("entry-remove").addEventListener("blur", calm);
  byId("history").addEventListener("toggle", () => attempt(showHistory));
  subscribe("word", showEntry);
}

/** Show the search of an entry, and begin it. */
export async function searchEntry(id) {
  if (word.entry?.entry_id !== id) await attempt(() => openWord(id));
  go("search", id);
  search();
}

/** Who changed the entry when, the newest first: among the last changes of the glossary. */
async function showHistory() {
  if (!byId("history").open || !word.entry) return;
  const id = word.entry.entry_id;
  const { changes } = await get("changes", { after: Math.max(0, server.state.change - PAST) });
  const own = changes.filter((made) => made.entry_id === id).reverse();
  fill(byId("history-changes"), ...own.map((made) => el("li", {}, t("history.change", {
    what: changeName(made), person: made.person, at: day(made.at),
  }))));
}

function written(field) {
  const value = word.entry[field];
  return field === "variants" ? value.join(", ") : value;
}

/** Show the entry that is open; what is being typed stays. */
export function showEntry() {
  byId("entry").hidden = !word.entry;
  byId("entry-none").hidden = Boolean(word.entry);
  if (!word.entry) return;
  const id = word.entry.entry_id;
  if (byId("entry-title").dataset.entry !== String(id)) {
    byId("history").open = false;
    calm();
  }
  byId("entry-title").dataset.entry = id;
  byId("entry-title").textContent = word.entry.form;
  for (const field of FIELDS) {
    const input = byId(`entry-${field}`);
    const typed = input.dataset.entry === String(id) && (document.activeElement === input || input.dataset.unsaved);
    if (!typed) input.value = written(field);
    input.dataset.entry = id;
  }
  for (const link of byId("entries").querySelectorAll("li")) {
    if (link.dataset.entry === String(id)) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  showTokens();
}

async function keep(field) {
  const input = byId(`entry-${field}`);
  const typed = input.value.trim();
  if (typed === written(field)) return;
  if (field === "form" && !typed) {
    input.value = word.entry.form;
    return;
  }
  const value = field === "variants" ? typed.split(",").map((part) => part.trim()).filter(Boolean) : typed;
  input.dataset.unsaved = "yes";
  await attempt(async () => {
    await change("PATCH", `entries/${word.entry.entry_id}`, { [field]: value });
    delete input.dataset.unsaved;
    say(t("entry.kept"));
    await readEntries();
  });
}

/** Removing asks once more on the button itself; it can be undone. */
async function remove() {
  const button = byId("entry-remove");
  if (button.dataset.sure !== "asked") {
    button.dataset.sure = "asked";
    button.textContent = t("entry.remove.sure");
    clearTimeout(removing);
    removing = setTimeout(calm, 5000);
    return;
  }
  calm();
  await attempt(async () => {
    await change("DELETE", `entries/${word.entry.entry_id}`);
    say(t("entry.removed", { form: word.entry.form }));
    await readEntries();
    go("glossary");
  });
}

function calm() {
  delete byId("entry-remove").dataset.sure;
  byId("entry-remove").textContent = t("entry.remove");
}
