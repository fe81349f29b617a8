/** Annotations beside recordings: tiers below the picture of a sound, at the same times, and an offer to import all. */

import { change, get } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { subscribe } from "./events.js";
import { attempt } from "./notices.js";
import { server } from "./state.js";
import { t, tn } from "./texts.js";
import { readEntries } from "./word.js";

/** The tiers of what is shown of a place's document; a press on an annotation gives it to `reached`, if there is that. */
export class Tiers {
  constructor(place, reached = null) {
    Object.assign(this, { place, reached });
    this.element = el("div.tiers", { hidden: true });
  }

  /** Show them from one second of the document to another. */
  async show({ begin, end }) {
    const { doc_id, channel, sound } = this.place;
    if (sound || !server.state.annotations?.recordings) return;
    const { tiers } = await get("tiers", { doc_id, channel, start: begin, end });
    fill(this.element, ...tiers.map((tier) => this.tier(tier, begin, end)));
    this.element.hidden = !tiers.length;
  }

  tier({ name, speaker, annotations }, begin, end) {
    const label = [name || t("tiers.text"), speaker].filter(Boolean).join(" · ");
    const items = annotations.map((annotation) => {
      const [from, to] = [Math.max(begin, annotation.start), Math.min(end, annotation.end)];
      const item = this.reached
        ? el("button.annotation", { type: "button", on: { click: () => this.reached({ start: from, end: to }) } }, annotation.text)
        : el("span.annotation", {}, annotation.text);
      item.title = annotation.text;
      item.style.left = `${(100 * (from - begin)) / (end - begin)}%`;
      item.style.width = `${(100 * (to - from)) / (end - begin)}%`;
      return item;
    });
    const shown = el("span.quiet.small", { aria: { hidden: "true" } }, label);
    return el("div.tier", { attr: { role: "group" }, aria: { label } }, shown, ...items);
  }
}

/** Offer to import annotations, of a tier or of all. */
export function startBeside() {
  const form = byId("beside");
  const select = byId("beside-tier");
  let shown = "";
  subscribe("state", ({ annotations }) => {
    form.hidden = !annotations?.tiers.length;
    const now = JSON.stringify(annotations);
    if (form.hidden || shown === now) return;
    const chosen = [...select.selectedOptions].map(({ value }) => value);
    shown = now;
    byId("beside-how").textContent = tn("beside.how", annotations.recordings);
    const option = ({ name, speakers, annotations: count }) =>
      el("option", { value: name }, tn("beside.tier", count, { name: [name, ...speakers].join(" · ") }));
    fill(select, ...annotations.tiers.map(option));
    for (const item of select.options) item.selected = chosen.includes(item.value);
    if (!select.selectedOptions.length) select.options[0].selected = true;
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      const tiers = [...select.selectedOptions].map(({ value }) => value);
      const examples = byId("import-examples").checked;
      const { added, changed, skipped, unusable, first } = await change("POST", "annotations", { tiers, examples });
      const done = t("import.done", { added, changed, skipped, name: tiers.join(", ") });
      byId("import-told").textContent = unusable ? `${done} ${t("import.unusable", { unusable, first })}` : done;
      await readEntries();
    });
  });
}
