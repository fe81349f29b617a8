/** A sound that somebody gave: its speech is marked, the ends can be moved, and it becomes an example. */

import { Tiers } from "./beside.js";
import { byId, el, fill } from "./dom.js";
import { attempt, say } from "./notices.js";
import { Stretch } from "./stretch.js";
import { Transcript, hasWords } from "./transcript.js";
import { length, t } from "./texts.js";
import { addExample } from "./word.js";
import { search } from "./search.js";
import { server } from "./state.js";

const SHORTEST = 0.1; // s; the server leaves out shorter examples

let shown = null;

/**
 * Show a sound to trim, in place of the one before.
 * @param {HTMLElement} parent
 * @param {{place: object, window: object, name: string, offset?: number}} sound what is marked at first within what is shown
 */
export function showTrim(parent, { place, window, name, offset = 0 }) {
  closeTrim();
  const lengthShown = el("span.quiet");
  const reached = ({ start, end }) => {
    stretch.start = Math.max(window.start, start);
    stretch.move("end", end);
    showLength();
  };
  const tiers = new Tiers(window, reached);
  const stretch = new Stretch(place, { window, offset, changed: showLength, heard: (clip) => tiers.show(clip) });
  const transcript = hasWords(window) ? new Transcript(window, { reached }) : null;
  const take = async (then) => {
    const marked = { ...place, start: stretch.start, end: stretch.end };
    await attempt(async () => {
      await addExample(marked, name);
      say(t("trim.taken"));
      closeTrim();
      if (then) search();
      byId(then ? "results" : "ask-title").scrollIntoView({ block: "nearest" });
    });
  };
  const buttons = el("div.row", {},
    el("button.play", { type: "button", on: { click: () => stretch.play() } }, "▶ ", t("trim.play")),
    el("button.plain", { type: "button", on: { click: () => stretch.play(true) } }, t("trim.all")),
    lengthShown,
    el("button.primary.trim-search", { type: "button", on: { click: () => take(true) } }, t("trim.search")),
    el("button.trim-take", { type: "button", on: { click: () => take(false) } }, t("trim.take")),
  );
  fill(parent, el("p.quiet", {}, t("trim.how")), stretch.element, tiers.element, transcript?.element, buttons);
  parent.hidden = false;
  shown = { stretch, transcript, parent };
  showLength();
  stretch.draw();

  function showLength() {
    const marked = stretch.end - stretch.start;
    const short = marked < SHORTEST - 0.001;
    lengthShown.textContent = t(short ? "trim.short" : "trim.length", { length: length(marked) });
    for (const button of buttons.querySelectorAll(".trim-search, .trim-take")) button.disabled = short;
  }
}

/** Take away the sound that is shown. */
export function closeTrim() {
  if (!shown) return;
  shown.stretch.close();
  shown.transcript?.forget();
  shown.parent.replaceChildren();
  shown.parent.hidden = true;
  shown = null;
}

/** Show a sound that the server took in: {sound, duration, speech}. */
export function showSound(parent, { sound, duration, speech }, name) {
  const longest = server.state.limits.clip_seconds;
  const [start, end] = speech ?? [0, duration];
  const place = { sound, doc_id: null, channel: 1, start, end: Math.min(end, duration) };
  const begin = duration <= longest ? 0 : Math.max(0, start - 1);
  showTrim(parent, { place, window: { ...place, start: begin, end: Math.min(duration, begin + longest) }, name });
  byId("asked-sound").scrollIntoView({ block: "nearest" });
}
