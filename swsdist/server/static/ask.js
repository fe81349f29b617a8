/** The ways to search: type a text; or, as tabs, record, upload, mark a word in a recording. */

import { startMarking } from "./ask-mark.js";
import { startRecording } from "./ask-record.js";
import { startUpload } from "./ask-upload.js";
import { byId } from "./dom.js";
import { subscribe } from "./events.js";
import { newWord } from "./routes.js";
import { found, search } from "./search.js";
import { keyMark, t } from "./texts.js";
import { asksForAnother, entryOf, glossary, word } from "./word.js";

const SPOKEN = ["record", "upload", "mark"];
let opened = {};
let asked = false;

function tabs() {
  return [...byId("ask-tabs").querySelectorAll("[role=tab]")].filter((tab) => !tab.hidden);
}

/** Show one way to ask. */
export function chooseAsking(name, { focus = false } = {}) {
  for (const tab of byId("ask-tabs").querySelectorAll("[role=tab]")) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !chosen;
    if (chosen && focus) tab.focus();
  }
  opened[name]?.();
  fold(false);
}

/** Below 60rem the ways give their room to the hits; the text stays. */
function fold(folded) {
  byId("ask").classList.toggle("folded", folded);
  byId("ask-fold").setAttribute("aria-expanded", String(!folded));
  byId("ask-fold").textContent = t(folded ? "ask.unfold" : "ask.fold");
}

function follow() {
  if (found.asked !== asked) fold(found.asked);
  asked = found.asked;
  byId("ask-fold").hidden = !asked;
  byId("steps").hidden = asked || glossary.entries.length > 0 || word.loose.length > 0;
}

function moveAmongTabs(event) {
  const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  if (!(event.key in steps)) return;
  event.preventDefault();
  event.stopPropagation();
  const all = tabs();
  const at = all.indexOf(event.target) + steps[event.key];
  const next = all[Math.abs(at) === Infinity ? (at > 0 ? all.length - 1 : 0) : (at + all.length) % all.length];
  chooseAsking(next.id.slice(4), { focus: true });
}

function offer(state) {
  const spoken = state.kinds.includes("spoken");
  for (const name of SPOKEN) byId(`tab-${name}`).hidden = !spoken;
  const written = state.kinds.includes("text");
  byId("text-form").hidden = !written;
  byId("text-none").hidden = written || !state.ready;
  byId("text-sound").closest("label").hidden = !(state.words && spoken && state.speak.length);
  byId("steps-give").textContent = t(written ? "steps.give.text" : "steps.give.how");
  const all = tabs();
  byId("ask-voice").hidden = !written || !all.length;
  byId("ask-tabs").hidden = !all.length;
  if (all.length && !all.some((tab) => tab.getAttribute("aria-selected") === "true")) chooseAsking(all[0].id.slice(4));
}

export function startAsking() {
  startRecording();
  startUpload();
  opened = { mark: startMarking() };
  for (const tab of byId("ask-tabs").querySelectorAll("[role=tab]")) {
    tab.addEventListener("click", () => chooseAsking(tab.id.slice(4)));
    tab.addEventListener("keydown", moveAmongTabs);
  }
  byId("text-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = byId("text-query").value.trim();
    byId("text-query").blur(); // keys judge hits now
    if (!text) return;
    if (asksForAnother(text)) await newWord(entryOf(text)?.entry_id);
    byId("text-query").value = text;
    search(text);
  });
  subscribe("opened", () => (byId("text-query").value = word.text ?? ""));
  byId("ask-fold").addEventListener("click", () => fold(!byId("ask").classList.contains("folded")));
  byId("steps-judge").append(t("steps.judge.how"), keyMark("y"), keyMark("n"));
  subscribe("state", offer);
  for (const event of ["hits", "word", "entries"]) subscribe(event, follow);
}
