/** A stretch of sound within its context: picture, mark, two handles that move its ends, and a playhead. */

import { el } from "./dom.js";
import { subscribe } from "./events.js";
import { showFailure } from "./notices.js";
import { drawClip, onColours } from "./pictures.js";
import { clip, isPlaying, play, stop } from "./sounds.js";
import { clock, length, t } from "./texts.js";

const LEAST = 0.01; // s
const DRAWN = 5; // px: less is a press
const STEPS = { ArrowLeft: -0.01, ArrowRight: 0.01, ArrowDown: -0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1 };

const shown = new Map();
const watcher = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) if (isIntersecting) shown.get(target)?.draw();
}, { rootMargin: "300px" });
const resizing = new ResizeObserver((changes) => {
  for (const { target } of changes) shown.get(target)?.redraw();
});
onColours(() => shown.forEach((stretch) => stretch.redraw()));
subscribe("located", () => {
  for (const [element, { clip }] of shown) if (!clip) (watcher.unobserve(element), watcher.observe(element));
});

export class Stretch {
  /**
   * @param {object} place whose start and end are marked
   * @param {{pad?: number, window?: object, offset?: number, changed?: (start: number, end: number) => void,
   *   heard?: (clip: {begin: number, end: number}) => void}} options
   *   `window` is a place whose sound is shown instead of the stretch with `pad` s around; `offset` is added to times that
   *   are said; with `changed` the ends can be moved; `heard` receives what is shown
   */
  constructor(place, { pad = 0.6, window = null, offset = 0, changed = null, heard = () => {} } = {}) {
    Object.assign(this, { place, pad, window, offset, changed, heard, start: place.start, end: place.end, clip: null, reading: null });
    this.canvas = el("canvas", { attr: { role: "img" }, aria: { label: t("stretch.picture") } });
    this.before = el("div.outside.before");
    this.after = el("div.outside.after");
    this.head = el("div.playhead", { hidden: true });
    this.mark = el("div.mark");
    this.trouble = el("p.trouble", { hidden: true });
    this.handles = changed ? ["start", "end"].map((side) => this.handle(side)) : [];
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    const parts = [this.canvas, this.before, this.after, this.mark, ...this.handles, this.head, this.trouble];
    this.element = el("div.stretch", {}, ...parts);
    shown.set(this.element, this);
    watcher.observe(this.element);
    resizing.observe(this.element);
  }

  /** Read the sound, if that was not done, and draw it. */
  draw() {
    this.reading ??= this.read();
    return this.reading;
  }

  async read() {
    try {
      this.clip = await clip(this.window ?? this.place, this.window ? 0 : this.pad);
      this.failure = null;
      this.element.classList.add("heard");
      this.trouble.textContent = this.clip.replaced ? t("stretch.replaced") : "";
      this.trouble.hidden = !this.clip.replaced;
      this.redraw();
      this.heard(this.clip);
    } catch (error) {
      this.reading = null;
      this.failure = error;
      this.trouble.textContent = `${error.message} ${error.remedy ?? ""}`;
      this.trouble.hidden = false;
    }
  }

  redraw() {
    if (!this.clip || !this.element.isConnected) return;
    drawClip(this.canvas, this.clip.buffer);
    this.setMark();
  }

  /** Forget the element: it is no longer on the page. */
  close() {
    watcher.unobserve(this.element);
    resizing.unobserve(this.element);
    shown.delete(this.element);
    if (isPlaying(this)) stop();
  }

  /** Play the marked stretch, or with `around` all that is shown; stop if it plays. */
  async play(around = false) {
    if (isPlaying(this)) return stop();
    await this.draw();
    if (!this.clip) return showFailure(this.failure, () => this.play(around));
    const [start, end] = around ? [this.clip.begin, this.clip.end] : [this.start, this.end];
    play(this, this.clip, start, end, (at) => {
      this.head.hidden = at === null;
      this.element.classList.toggle("playing", at !== null);
      if (at !== null) this.head.style.left = `${100 * this.share(at)}%`;
    });
  }

  share(at) {
    return Math.min(1, Math.max(0, (at - this.clip.begin) / (this.clip.end - this.clip.begin)));
  }

  setMark() {
    const [from, to] = [this.share(this.start), this.share(this.end)];
    this.before.style.width = `${100 * from}%`;
    this.after.style.left = `${100 * to}%`;
    this.mark.style.left = `${100 * from}%`;
    this.mark.style.width = `${100 * (to - from)}%`;
    for (const handle of this.handles) {
      const side = handle.dataset.side;
      handle.style.left = `${100 * (side === "start" ? from : to)}%`;
      handle.setAttribute("aria-valuemin", this.clip.begin.toFixed(2));
      handle.setAttribute("aria-valuemax", this.clip.end.toFixed(2));
      handle.setAttribute("aria-valuenow", this[side].toFixed(2));
      const values = { at: clock(this[side] + this.offset, 2), length: length(this.end - this.start) };
      handle.setAttribute("aria-valuetext", t("stretch.value", values));
    }
  }

  /** Move an end; it stays within what is shown. Gives the side that it is on then: ends that cross swap. */
  move(side, at) {
    const moved = Math.min(Math.max(this.clip.begin, at), this.clip.end);
    const fixed = side === "start" ? this.end : this.start;
    if (Math.abs(moved - fixed) < LEAST / 2) return side;
    [this.start, this.end] = [moved, fixed].sort((a, b) => a - b);
    this.setMark();
    return moved < fixed ? "start" : "end";
  }

  /** The second under a pointer. */
  under({ clientX }) {
    const { left, width } = this.canvas.getBoundingClientRect();
    return this.clip.begin + ((clientX - left) / width) * (this.clip.end - this.clip.begin);
  }

  /** A press on the picture plays the stretch; drawing over it marks another. */
  press(event) {
    if (!this.clip || event.button) return;
    const from = this.under(event);
    let drawn = false;
    const moved = (move) => {
      drawn ||= this.changed && Math.abs(move.clientX - event.clientX) > DRAWN;
      if (!drawn) return;
      [this.start, this.end] = [from, from + LEAST];
      this.move("end", this.under(move));
    };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.addEventListener("pointermove", moved);
    this.canvas.addEventListener("lostpointercapture", () => {
      this.canvas.removeEventListener("pointermove", moved);
      if (drawn) this.changed(this.start, this.end);
    }, { once: true });
    this.canvas.addEventListener("click", () => drawn || this.play(), { once: true });
  }

  handle(side) {
    const handle = el("div.handle", {
      tabIndex: 0,
      data: { side },
      attr: { role: "slider" },
      aria: { label: t(`stretch.${side}`), orientation: "horizontal", valuenow: this[side].toFixed(2) },
    });
    handle.addEventListener("keydown", async (event) => {
      if (!(event.key in STEPS)) return;
      event.preventDefault();
      event.stopPropagation();
      await this.draw(); // of a row that was just made the sound still comes
      if (!this.clip) return;
      const now = this.move(side, this[side] + STEPS[event.key] * (event.shiftKey ? 10 : 1));
      this.handles.find(({ dataset }) => dataset.side === now).focus();
      this.changed(this.start, this.end);
    });
    handle.addEventListener("pointerdown", (event) => {
      if (!this.clip) return;
      handle.setPointerCapture(event.pointerId);
      let now = side;
      const moved = (move) => (now = this.move(now, this.under(move)));
      handle.addEventListener("pointermove", moved);
      handle.addEventListener("lostpointercapture", () => {
        handle.removeEventListener("pointermove", moved);
        this.changed(this.start, this.end);
      }, { once: true });
    });
    return handle;
  }
}
