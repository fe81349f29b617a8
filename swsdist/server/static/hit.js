/** A hit on the page: its sound within its context, how likely it is, and keys to judge it. */

import { Tiers } from "./beside.js";
import { el } from "./dom.js";
import { alsoIn, placeOfHit } from "./places.js";
import { Stretch } from "./stretch.js";
import { Transcript, hasWords } from "./transcript.js";
import { clock, keyMark, length, number, percent, t } from "./texts.js";

const AROUND = 5; // s of the transcript before and after the hit

export const VERDICTS = [["yes", "y", "✓"], ["no", "n", "✗"], ["unsure", "u", "?"]];

export class HitCard {
  /**
   * @param {object} hit
   * @param {{judge: (card: HitCard, verdict: string) => void, note: (card: HitCard, text: string) => void,
   *   reached: (card: HitCard) => void}} does
   */
  constructor(hit, does) {
    Object.assign(this, { hit, does, unsaved: null });
    const pad = Math.min(1.2, Math.max(0.5, (hit.end - hit.start) * 0.8));
    this.tiers = new Tiers(placeOfHit(hit));
    const heard = (clip) => this.tiers.show(clip);
    this.stretch = new Stretch(placeOfHit(hit), { pad, offset: hit.at - hit.start, changed: () => {}, heard });
    this.transcript = hasWords(placeOfHit(hit)) ? new Transcript(placeOfHit(hit), { around: AROUND }) : null;
    this.rank = el("span.rank");
    this.likely = el("span.likely");
    this.bar = el("span.bar", {}, el("span"));
    this.verdict = el("span.verdict");
    this.note = el("input.note", {
      type: "text",
      aria: { label: t("hit.note") },
      placeholder: t("hit.note"),
      on: { change: () => does.note(this, this.note.value) },
    });
    this.buttons = Object.fromEntries(VERDICTS.map(([verdict, key, sign]) => [verdict, this.button(verdict, key, sign)]));
    this.element = el(
      "article.hit",
      { tabIndex: -1, on: { focusin: () => does.reached(this) } },
      el("header", {}, this.rank, el("span.where", {}, hit.recording),
        el("span.time", {}, clock(hit.at)), el("span.quiet", {}, length(hit.end - hit.start)),
        el("span.quiet.who", {}, [hit.speaker, hit.date, alsoIn(hit)].filter(Boolean).join(" · ")), this.verdict,
        el("span.odds", {}, this.bar, this.likely)),
      this.stretch.element, this.tiers.element, this.transcript?.element,
      el("div.actions", {}, this.playButton(), el("div.verdicts", { attr: { role: "group" }, aria: { label: t("hit.verdict") } },
        ...Object.values(this.buttons)), this.note),
    );
  }

  playButton() {
    return el("button.play", { type: "button", aria: { keyshortcuts: "Space" }, on: { click: () => this.stretch.play() } },
      "▶ ", t("hit.play"));
  }

  button(verdict, key, sign) {
    return el("button", {
      type: "button",
      data: { verdict },
      aria: { pressed: "false", keyshortcuts: key },
      on: { click: () => this.does.judge(this, verdict) },
    }, `${sign} `, t(`verdict.${verdict}`), keyMark(key));
  }

  /** Show the hit as it is now: its rank, its token if it was judged, whether it is the current one. */
  show({ rank, token, current }) {
    const verdict = token?.verdict ?? null;
    this.token = token ?? null;
    this.rank.textContent = number(rank);
    this.element.classList.toggle("current", current);
    this.element.dataset.verdict = verdict ?? "";
    this.element.tabIndex = current ? 0 : -1;
    for (const control of this.element.querySelectorAll("button:not(.word), input, .handle")) control.tabIndex = current ? 0 : -1;
    this.transcript?.setTab(current ? 0 : -1);
    for (const [name, button] of Object.entries(this.buttons)) button.setAttribute("aria-pressed", String(name === verdict));
    this.showLikely(verdict);
    this.showVerdict(verdict, token);
    if (token?.note && document.activeElement !== this.note) this.note.value = token.note;
    const values = { rank, recording: this.hit.recording, at: clock(this.hit.at) };
    this.element.setAttribute("aria-label", [t("hit.label", values), this.verdict.textContent, this.likely.textContent]
      .filter(Boolean).join(", "));
  }

  showLikely(verdict) {
    const share = this.hit.likely;
    const known = verdict === null && Boolean(this.hit.called);
    this.likely.textContent = known ? t(`called.${this.hit.called}`, { share: percent(share) }) : "";
    this.bar.hidden = !known;
    this.bar.firstChild.style.width = known ? `${100 * share}%` : "0";
  }

  showVerdict(verdict, token) {
    if (this.unsaved) this.verdict.textContent = t("hit.unsaved");
    else if (verdict) {
      const sign = VERDICTS.find(([name]) => name === verdict)[2];
      this.verdict.textContent = `${sign} ${t("hit.judged", { verdict: t(`verdict.${verdict}`), person: token.person ?? "" })}`;
    } else this.verdict.textContent = "";
  }

  close() {
    this.stretch.close();
    this.transcript?.forget();
  }
}
