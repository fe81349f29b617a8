/** The glossary: its words, a search within them, merging, taking along, bringing in. */

import { address, change, get, upload } from "./api.js";
import { bindChoice, choice } from "./choices.js";
import { byId, el, fill } from "./dom.js";
import { showEntry } from "./entry.js";
import { subscribe } from "./events.js";
import { attempt, say } from "./notices.js";
import { go } from "./routes.js";
import { t, tn } from "./texts.js";
import { glossary, readEntries } from "./word.js";

const chosen = new Set(); // entry_id
let shown = null; // the entries that the text finds; null: all
let typing = 0;
const LANGUAGES = ["forms", "glosses"]; // of LIFT

export function startGlossary() {
  byId("glossary-text").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => attempt(find), 200);
  });
  byId("new-entry").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(add);
  });
  byId("merge").addEventListener("click", () => attempt(merge));
  byId("export-kind").addEventListener("change", showLink);
  for (const name of LANGUAGES) bindChoice(`export-${name}`, name);
  subscribe("choices", showLink);
  byId("import-file").addEventListener("change", ({ target }) => attempt(() => bringIn(target.files[0])));
  subscribe("entries", () => (shown ? attempt(find) : show()));
  subscribe("state", offerExports);
}

async function find() {
  const text = byId("glossary-text").value.trim();
  shown = text ? (await get("entries", { text })).entries : null;
  show();
}

async function add() {
  const input = byId("new-form");
  if (!input.value.trim()) return;
  const entry = await change("POST", "entries", { form: input.value.trim() });
  input.value = "";
  await readEntries();
  go("glossary", entry.entry_id);
}

function show() {
  const known = new Set(glossary.entries.map((entry) => entry.entry_id));
  for (const id of chosen) if (!known.has(id)) chosen.delete(id);
  const list = shown ?? glossary.entries;
  byId("glossary-count").textContent = tn("glossary.count", list.length);
  byId("glossary-none").hidden = glossary.entries.length > 0;
  fill(byId("entries"), ...list.map(row));
  showChosen();
  showEntry();
}

function row(entry) {
  const box = el("input", {
    type: "checkbox",
    checked: chosen.has(entry.entry_id),
    data: { focus: `choose-${entry.entry_id}` },
    aria: { label: t("glossary.choose", { form: entry.form }) },
    on: { change: () => (chosen[box.checked ? "add" : "delete"](entry.entry_id), showChosen()) },
  });
  const counts = t("glossary.counts", { yes: entry.yes, no: entry.no, unsure: entry.unsure });
  return el("li", { data: { entry: entry.entry_id } }, box, el("a", {
    href: `#glossary/${entry.entry_id}`, data: { focus: `entry-${entry.entry_id}` },
  }, el("span.form", {}, entry.form), el("span.gloss", {}, entry.gloss), el("span.quiet.counts", {}, counts)));
}

function showChosen() {
  byId("chosen-count").textContent = chosen.size ? tn("glossary.chosen", chosen.size) : t("glossary.chosen.none");
  byId("merge").disabled = chosen.size !== 2;
  showLink();
}

/** Two entries become the one that was listed first. */
async function merge() {
  const [entry, other] = glossary.entries.filter(({ entry_id }) => chosen.has(entry_id));
  await change("POST", `entries/${entry.entry_id}/merge`, { other: other.entry_id });
  chosen.clear();
  await readEntries();
  say(t("glossary.merged", { form: entry.form, other: other.form }));
  go("glossary", entry.entry_id);
}

function offerExports({ exports }) {
  const select = byId("export-kind");
  if (select.options.length === exports.length) return;
  fill(select, ...exports.map((kind) => el("option", { value: kind }, t(`export.${kind}`))));
  showLink();
}

function showLink() {
  const kind = byId("export-kind").value;
  const query = { entries: [...chosen].join(",") };
  byId("export-languages").hidden = kind !== "lift";
  if (kind === "lift") for (const name of LANGUAGES) query[name] = choice(name);
  byId("export-link").href = `api/${address(`export/${kind}`, query)}`;
  if (kind === "lift" && byId("export-languages").querySelector(":invalid")) byId("export-link").removeAttribute("href");
  byId("export-link").textContent = chosen.size ? tn("export.some", chosen.size) : t("export.all");
}

async function bringIn(file) {
  if (!file) return;
  const where = address("import", { examples: byId("import-examples").checked });
  const { added, changed, skipped, unusable, first } = await upload(where, file, file.name);
  byId("import-file").value = "";
  const done = t("import.done", { added, changed, skipped, name: file.name });
  byId("import-told").textContent = unusable ? `${done} ${t("import.unusable", { unusable, first })}` : done;
  await readEntries();
}
