/** The ways to ask: type a text; or, as tabs, record, upload, mark a stretch, take a class. */

import { startClasses } from "./ask-class.js";
import { startMarking } from "./ask-mark.js";
import { startRecording } from "./ask-record.js";
import { startUpload } from "./ask-upload.js";
import { byId } from "./dom.js";
import { subscribe } from "./events.js";
import { search } from "./search.js";

const SPOKEN = ["record", "upload", "mark"];
let opened = {};

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
  byId("tab-class").hidden = !state.classes;
  const all = tabs();
  byId("ask-voice").hidden = !written || !all.length;
  byId("ask-tabs").hidden = !all.length;
  if (all.length && !all.some((tab) => tab.getAttribute("aria-selected") === "true")) chooseAsking(all[0].id.slice(4));
}

export function startAsking() {
  startRecording();
  startUpload();
  opened = { mark: startMarking(), class: startClasses() };
  for (const tab of byId("ask-tabs").querySelectorAll("[role=tab]")) {
    tab.addEventListener("click", () => chooseAsking(tab.id.slice(4)));
    tab.addEventListener("keydown", moveAmongTabs);
  }
  byId("text-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("text-query").value.trim();
    byId("text-query").blur(); // keys judge hits now
    if (text) search(text);
  });
  subscribe("state", offer);
}
