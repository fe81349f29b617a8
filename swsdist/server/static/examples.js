/** The examples by which the word is searched: heard, taken or left out, counted. */

import { change } from "./api.js";
import { bindChoice } from "./choices.js";
import { byId, el, fill } from "./dom.js";
import { subscribe } from "./events.js";
import { attempt } from "./notices.js";
import { search } from "./search.js";
import { playPlace } from "./sounds.js";
import { clock, keyMark, length, t, tn } from "./texts.js";
import { dropExample, entryOf, examples, glossary, keepDraft, needEntry, readEntries, useExample, word } from "./word.js";

export function startExamples() {
  bindChoice("most", "most");
  byId("search-button").addEventListener("click", () => search());
  byId("search-button").append(keyMark("s"));
  byId("keep-word").addEventListener("click", () => attempt(needEntry));
  byId("use-all").addEventListener("click", () => useEach(true));
  byId("use-none").addEventListener("click", () => useEach(false));
  byId("word-form").addEventListener("change", keepWord);
  byId("word-gloss").addEventListener("change", keepWord);
  for (const name of ["form", "gloss"]) {
    byId(`word-${name}`).addEventListener("input", (event) => {
      word.draft[name] = event.target.value;
      keepDraft();
      showWord();
    });
  }
  subscribe("word", show);
  subscribe("entries", showWord);
  subscribe("opened", showWord);
}

async function useEach(used) {
  await attempt(async () => {
    for (const example of examples()) if (example.used !== used) await useExample(example, used);
  });
}

/** What is typed as form and gloss goes to the entry; for a word without one it waits for the first judgement. */
async function keepWord({ target }) {
  const name = target.id === "word-form" ? "form" : "gloss";
  if (!word.entry || target.value.trim() === word.entry[name]) return;
  if (name === "form" && !target.value.trim()) return showWord();
  await attempt(async () => {
    await change("PATCH", `entries/${word.entry.entry_id}`, { [name]: target.value.trim() });
    await readEntries();
  });
}

function showWord() {
  for (const name of ["form", "gloss"]) {
    const input = byId(`word-${name}`);
    if (document.activeElement !== input) input.value = word.entry ? word.entry[name] : word.draft[name];
  }
  const same = !word.entry && entryOf(word.draft.form);
  byId("keep-word").hidden = Boolean(word.entry) || !(word.draft.form.trim() || word.loose.length);
  byId("word-counts").textContent = word.entry
    ? t("word.counts", { yes: word.entry.yes, no: word.entry.no, unsure: word.entry.unsure })
    : same ? t("word.same", { form: same.form }) : t("word.fresh");
  byId("keep-word").textContent = t(same ? "word.open" : "word.keep");
  fill(byId("forms"), ...(word.entry ? [] : glossary.entries.map(({ form }) => el("option", { value: form }))));
}

function show() {
  showWord();
  const all = examples();
  const used = all.filter((example) => example.used).length;
  byId("examples-count").textContent = all.length ? tn("examples.count", all.length, { used }) : t("examples.none");
  byId("use-all").disabled = used === all.length;
  byId("use-none").disabled = !used;
  byId("examples-tools").hidden = !all.length;
  byId("examples-card").hidden = !all.length && !word.text;
  byId("search-button").disabled = !used && !word.text;
  fill(byId("examples"), ...all.map(row));
}

function row(example, index) {
  const { place, name, used, token } = example;
  const label = t("examples.label", { n: index + 1, name, at: clock(place.start) });
  const box = el("input", {
    type: "checkbox",
    checked: used,
    data: { focus: `use-${index}` },
    aria: { label: t("examples.use", { label }) },
    on: { change: () => attempt(() => useExample(example, box.checked)) },
  });
  const play = el("button.plain.play", {
    type: "button",
    data: { focus: `play-${index}` },
    aria: { label: t("examples.play", { label }) },
    on: { click: () => playPlace(`example ${index}`, place, { pad: 0.1 }) },
  }, "▶");
  const drop = token ? null : el("button.plain", {
    type: "button", aria: { label: t("examples.drop", { label }) }, on: { click: () => dropExample(example) },
  }, "✕");
  const text = el("span.what", { title: name }, el("span", {}, name.split("/").at(-1)),
    el("span.quiet", {}, ` ${clock(place.start)} · ${length(place.end - place.start)}`));
  return el("li", {}, el("label", {}, box, text), play, drop);
}
