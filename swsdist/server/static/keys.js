/** Keys of the page, one table: what is pressed, what happens, and the text of the help. */

import { toggleRecording } from "./ask-record.js";
import { chooseAsking } from "./ask.js";
import * as candidates from "./candidates.js";
import { bindChoice, choice } from "./choices.js";
import { byId, el, fill, takesText } from "./dom.js";
import { emit } from "./events.js";
import * as hits from "./hits.js";
import { attempt } from "./notices.js";
import { currentView, go, newWord } from "./routes.js";
import { search } from "./search.js";
import { t } from "./texts.js";
import { undo } from "./word.js";

const LISTS = ["search", "candidates"];

/** What the list of the view does. */
const list = () => (currentView() === "candidates" ? candidates : hits);

/** [keys, text, action, views in which they work (any if null)] */
const KEYS = [
  [["j", "ArrowDown"], "keys.next", () => list().moveBy(1), LISTS],
  [["k", "ArrowUp"], "keys.previous", () => list().moveBy(-1), LISTS],
  [[" "], "keys.play", () => list().playCurrent(false), LISTS],
  [["c"], "keys.context", () => hits.playCurrent(true), ["search"]],
  [["y"], "keys.yes", () => list().judgeCurrent("yes"), LISTS],
  [["n"], "keys.no", () => list().judgeCurrent("no"), LISTS],
  [["u"], "keys.unsure", () => hits.judgeCurrent("unsure"), ["search"]],
  [["z"], "keys.undo", takeBack, null],
  [["m"], "keys.note", () => list().noteCurrent(), LISTS],
  [["t"], "keys.trim", hits.trimCurrent, ["search"]],
  [["s"], "keys.search", () => search(), ["search"]],
  [["q"], "keys.type", () => (byId("text-query").focus(), byId("text-query").select()), ["search"]],
  [["r"], "keys.record", () => (chooseAsking("record"), toggleRecording()), ["search"]],
  [["w"], "keys.new", newWord, null],
  [["g"], "keys.glossary", () => byId("to-glossary").click(), null],
  [["f"], "keys.search.view", () => byId("to-search").click(), null],
  [["/"], "keys.find", () => (go("glossary"), byId("glossary-text").focus()), null],
  [["?"], "keys.help", () => byId("help").showModal(), null],
];

const NAMES = { " ": "key.space", ArrowDown: "key.down", ArrowUp: "key.up" };

function takeBack() {
  return attempt(undo).then(() => emit("undone"));
}

export function startKeys() {
  byId("undo").addEventListener("click", takeBack);
  byId("word-new").addEventListener("click", () => newWord());
  bindChoice("keys-on", "keys");
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  for (const button of document.querySelectorAll("dialog [data-close]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
  fill(byId("keys"), ...KEYS.flatMap(([keys, text]) => [
    el("dt", {}, ...keys.flatMap((key, n) => [n ? " " : "", el("kbd", {}, key in NAMES ? t(NAMES[key]) : key)])),
    el("dd", {}, t(text)),
  ]));
  document.addEventListener("keydown", press);
}

function press(event) {
  if (event.key === "Escape" && takesText(event.target)) return event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || takesText(event.target) || document.querySelector("dialog[open]")) return;
  if (!choice("keys") && event.key !== "?") return;
  if (event.key === " " && event.target.closest("button, a, summary, input")) return;
  const pressed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const row = KEYS.find(([keys, , , views]) => keys.includes(pressed) && (views === null || views.includes(currentView())));
  if (!row || (event.repeat && !["j", "k", "ArrowDown", "ArrowUp"].includes(pressed))) return;
  if (event.key.startsWith("Arrow") && event.target.closest("[role=tab], [type=range], [type=radio]")) return;
  event.preventDefault();
  row[2]();
}
