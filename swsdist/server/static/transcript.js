/** Words of a stretch of a recording: each plays from there, those that were found are marked, and wrong ones are corrected. */

import { change, get } from "./api.js";
import { el, fill } from "./dom.js";
import { emit, subscribe } from "./events.js";
import { attempt, say } from "./notices.js";
import { clip, play, stop } from "./sounds.js";
import { server } from "./state.js";
import { day, percent, t, tn } from "./texts.js";

const SHORTEST = 0.02; // s: a word may last no time, a correction may not
const CHANGED = ["correct", "remove-correction", "import", "undo"];

const shown = new Map();
const watcher = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) if (isIntersecting) shown.get(target)?.draw();
}, { rootMargin: "300px" });

function readAgain() {
  for (const transcript of shown.values()) if (transcript.reading && transcript.form.hidden) transcript.read();
}
subscribe("corrected", readAgain);
subscribe("undone", readAgain);
subscribe("changes", (changes) => changes.some(({ kind }) => CHANGED.includes(kind)) && readAgain());

/** Whether there may be words of a place. */
export function hasWords({ sound }) {
  return !sound && server.state.words;
}

export class Transcript {
  /**
   * @param {object} place of a document
   * @param {{around?: number, reached?: (word: object) => void}} options the words `around` (s) the place are shown, too, and
   *   those in it are marked; `reached` receives the pressed word
   */
  constructor(place, { around = 0, reached = () => {} } = {}) {
    const most = server.state.limits.transcript_seconds;
    const start = Math.max(0, place.start - around);
    this.window = { ...place, start, end: Math.min(place.end + around, start + most) };
    Object.assign(this, { place, reached, marks: around > 0, words: [], at: 0, range: null, tab: 0, reading: null });
    this.list = el("p.transcribed", { attr: { role: "group" }, aria: { label: t("transcript.label") } });
    this.note = el("p.quiet.small", { hidden: true });
    this.opener = el("button.plain.small", { type: "button", hidden: true, on: { click: () => this.open() } },
      "✎ ", t("transcript.correct"));
    this.text = el("input", { type: "text", className: "form", maxLength: 500, autocomplete: "off" });
    this.back = el("button", { type: "button", on: { click: () => this.takeBack() } }, t("transcript.back"));
    this.form = el("form", { hidden: true, className: "correcting", on: { submit: (event) => this.save(event) } },
      el("label", {}, el("span", {}, t("transcript.text")), this.text),
      el("p.quiet.small", {}, t("transcript.how")),
      el("div.row", {}, el("button.primary", {}, t("transcript.save")), this.back,
        el("button.plain", { type: "button", on: { click: () => this.close() } }, t("failure.close"))));
    this.element = el("div.transcript", {}, this.list, this.note, this.opener, this.form);
    shown.set(this.element, this);
    watcher.observe(this.element);
  }

  /** Read the words, if that was not done. */
  draw() {
    this.reading ??= this.read();
    return this.reading;
  }

  async read() {
    const { doc_id, channel, start, end } = this.window;
    try {
      const { words, known, replaced } = await get("transcript", { doc_id, channel, start, end });
      this.words = words;
      this.show();
      const missing = known ? "transcript.silent" : "transcript.none";
      const notes = [words.length ? null : t(missing), replaced ? tn("transcript.replaced", replaced) : null];
      this.note.textContent = notes.filter(Boolean).join(" ");
    } catch (error) {
      this.reading = null;
      this.note.textContent = `${error.message} ${error.remedy ?? ""}`;
    }
    this.note.hidden = !this.note.textContent;
  }

  show() {
    this.at = Math.max(0, this.words.findIndex((word) => this.isFound(word)));
    this.buttons = this.words.map((word, n) => this.button(word, n));
    fill(this.list, ...this.buttons.flatMap((button, n) => [this.words[n].spaced ? " " : "", button]));
    this.opener.hidden = !this.words.length || !this.form.hidden;
    this.setTab(this.tab);
  }

  button(word, n) {
    const { correction, text, confidence, recognised } = word;
    const by = { person: word.person, at: correction ? day(word.at) : "", recognised: recognised || t("transcript.nothing") };
    const title = correction ? t("transcript.by", by) : t("transcript.sure", { share: percent(confidence) });
    const content = correction && !text ? el("s", {}, recognised || "∅") : text;
    const button = el("button.word", {
      type: "button", title, data: { focus: `word-${n}` }, on: { click: () => this.press(n), keydown: (event) => this.move(event, n) },
    }, this.isFound(word) ? el("mark", {}, content) : content);
    if (correction) button.append(el("span.visually-hidden", {}, `, ${title}`));
    button.classList.toggle("corrected", Boolean(correction));
    button.classList.toggle("doubtful", !correction && confidence < 0.5);
    return button;
  }

  /** Whether a word lies in the place, by more than half of the shorter. */
  isFound({ start, end }) {
    const common = Math.min(end, this.place.end) - Math.max(start, this.place.start);
    return this.marks && common > 0.5 * Math.min(Math.max(end - start, SHORTEST), this.place.end - this.place.start);
  }

  /** One word is in the order of Tab, or with -1 none; arrows go to the others. */
  setTab(tab) {
    this.tab = tab;
    this.buttons?.forEach((button, n) => (button.tabIndex = n === this.at ? tab : -1));
  }

  move(event, n) {
    const next = this.buttons[n + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? NaN)];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    this.at = this.buttons.indexOf(next);
    this.setTab(this.tab);
    next.focus();
  }

  /** Play from a word; while a correction is written, it grows as far as the word, or shrinks to it. */
  press(n) {
    this.at = n;
    this.setTab(this.tab);
    if (this.range) {
      const [first, last] = this.range;
      this.choose(n < first ? [n, last] : n > last ? [first, n] : [n, n]);
    }
    this.reached(this.words[n]);
    return this.playFrom(this.words[n].start);
  }

  async playFrom(start) {
    stop();
    const from = await attempt(() => clip(this.window, 0));
    if (!from) return;
    play(this, from, Math.max(from.begin, start), from.end, (at) => {
      const said = at === null ? -1 : this.words.findLastIndex((word) => word.start <= at);
      this.buttons.forEach((button, n) => button.classList.toggle("speaking", n === said));
    });
  }

  /** Begin a correction: of the words that were found, or of the one that was pressed last. */
  open() {
    const found = this.words.flatMap((word, n) => (this.isFound(word) ? [n] : []));
    this.form.hidden = false;
    this.opener.hidden = true;
    this.choose(found.includes(this.at) ? [found[0], found.at(-1)] : [this.at, this.at]);
    this.text.select();
  }

  /** Choose words from first to last, and all whose middle lies in their time: subtitles give the words of a line one time. */
  choose([first, last]) {
    const { start, end } = this.span([first, last]);
    const covered = this.words.flatMap((word, n) => {
      const middle = (word.start + word.end) / 2;
      return start <= middle && middle < end ? [n] : [];
    });
    const wider = [Math.min(first, ...covered), Math.max(last, ...covered)];
    if (wider[0] < first || wider[1] > last) return this.choose(wider);
    this.range = [first, last];
    this.buttons.forEach((button, n) => button.classList.toggle("chosen", n >= first && n <= last));
    const chosen = this.words.slice(first, last + 1);
    this.text.value = chosen.reduce((all, { text, spaced }) => all + (all && text && spaced ? " " : "") + text, "");
    this.back.hidden = !chosen.some(({ correction }) => correction);
  }

  /** When words are said, from first to last. */
  span([first, last]) {
    const chosen = this.words.slice(first, last + 1);
    const start = Math.min(...chosen.map((word) => word.start));
    return { start, end: Math.max(start + SHORTEST, ...chosen.map((word) => word.end)) };
  }

  close() {
    this.form.hidden = true;
    this.range = null;
    this.show();
    this.buttons[this.at]?.focus();
  }

  async save(event) {
    event.preventDefault();
    const { doc_id, channel } = this.place;
    const place = { doc_id, channel, ...this.span(this.range) };
    await this.changed(() => change("POST", "corrections", { place, text: this.text.value }), "transcript.saved");
  }

  /** Let what was recognised count again. */
  async takeBack() {
    const [first, last] = this.range;
    const ids = this.words.slice(first, last + 1).map(({ correction }) => correction).filter(Boolean);
    await this.changed(async () => {
      for (const id of ids) await change("DELETE", `corrections/${id}`);
    }, "transcript.removed");
  }

  async changed(work, told) {
    await attempt(async () => {
      await work();
      this.close();
      say(t(told));
      emit("corrected");
    });
  }

  /** Forget the element: it is no longer on the page. */
  forget() {
    watcher.unobserve(this.element);
    shown.delete(this.element);
  }
}
