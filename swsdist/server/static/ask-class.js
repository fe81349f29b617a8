/** Ask with a class that `discover` found: hear its first member, take it as an example. */

import { get } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { attempt } from "./notices.js";
import { search } from "./search.js";
import { playPlace } from "./sounds.js";
import { t, tn } from "./texts.js";
import { addExample } from "./word.js";

const classes = [];

/** Listen to the panel; gives what to do when it is opened. */
export function startClasses() {
  byId("classes-more").addEventListener("click", () => list());
  return () => !classes.length && list();
}

async function list() {
  const page = await attempt(() => get("classes", { offset: classes.length }));
  if (!page) return;
  classes.push(...page.classes);
  fill(byId("classes"), ...classes.map(row));
  byId("classes-more").hidden = classes.length >= page.total;
}

function row(found, index) {
  const named = t("class.name", { name: found.name });
  const take = async () => {
    await attempt(async () => {
      await addExample(found.place, named);
      await search();
    });
  };
  return el("li", {},
    el("span.what", {}, el("span", {}, named), el("span.quiet", {}, ` ${tn("class.members", found.members)}`)),
    el("button.plain.play", { type: "button", aria: { label: t("class.play", { named }) },
      on: { click: () => playPlace(`class ${index}`, found.place, { pad: 0.1 }) } }, "▶"),
    el("button", { type: "button", aria: { label: t("class.take", { named }) }, on: { click: take } }, t("class.search")));
}
