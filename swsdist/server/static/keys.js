/** Keys of the page, one table: what is pressed, what happens, and the text of the help. */

import { toggleRecording } from "./ask-record.js";
import { chooseAsking } from "./ask.js";
import { bindChoice, choice } from "./choices.js";
import { byId, el, fill, takesText } from "./dom.js";
import { emit } from "./events.js";
import { judgeCurrent, moveBy, noteCurrent, playCurrent, trimCurrent } from "./hits.js";
import { attempt } from "./notices.js";
import { currentView, go, newWord } from "./routes.js";
import { search } from "./search.js";
import { t } from "./texts.js";
import { undo } from "./word.js";

/** [keys, text, action, view in which they work (any if null)] */
const KEYS = [
  [["j", "ArrowDown"], "keys.next", () => moveBy(1), "search"],
  [["k", "ArrowUp"], "keys.previous", () => moveBy(-1), "search"],
  [[" "], "keys.play", () => playCurrent(false), "search"],
  [["c"], "keys.context", () => playCurrent(true), "search"],
  [["y"], "keys.yes", () => judgeCurrent("yes"), "search"],
  [["n"], "keys.no", () => judgeCurrent("no"), "search"],
  [["u"], "keys.unsure", () => judgeCurrent("unsure"), "search"],
  [["z"], "keys.undo", takeBack, null],
  [["m"], "keys.note", noteCurrent, "search"],
  [["t"], "keys.trim", trimCurrent, "search"],
  [["s"], "keys.search", () => search(), "search"],
  [["q"], "keys.type", () => byId("text-query").focus(), "search"],
  [["r"], "keys.record", () => (chooseAsking("record"), toggleRecording()), "search"],
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
  byId("word-new").addEventListener("click", newWord);
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
  const row = KEYS.find(([keys, , , view]) => keys.includes(pressed) && (view === null || view === currentView()));
  if (!row || (event.repeat && !["j", "k", "ArrowDown", "ArrowUp"].includes(pressed))) return;
  if (event.key.startsWith("Arrow") && event.target.closest("[role=tab], [type=range], [type=radio]")) return;
  event.preventDefault();
  row[2]();
}
