/** How far a folder is indexed, and what could not be read, at the top of the page. */

import { Failure } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { subscribe } from "./events.js";
import { showFailure } from "./notices.js";
import { hasText, hours as hoursOf, number, percent, reason, t, tn } from "./texts.js";

export function startProgress() {
  let shown = null;
  subscribe("state", ({ error }) => {
    if (error && error.error !== shown) showFailure(new Failure(error.error, error.remedy, error.code));
    shown = error?.error ?? null;
  });
  subscribe("state", ({ indexing, preparing, hours, recordings, ready, store, name }) => {
    byId("indexing").hidden = !indexing && !preparing;
    byId("store-name").textContent = name;
    byId("store-name").title = store;
    byId("store-size").textContent = recordings ? tn("store.size", recordings, { length: hoursOf(hours) }) : "";
    if (indexing) showIndexing(indexing, ready);
    else showPart(null, t("search.preparing"), "");
  });
  subscribe("state", ({ rejected: { count, files } }) => {
    byId("rejected").hidden = !count;
    byId("rejected-count").textContent = tn("files.rejected", count);
    fill(byId("rejected-files"), ...files.map(({ path, id, reason: code, message, remedy }) => el("li", {},
      el("strong", {}, (path ?? id).split(/[/\\]/).at(-1)), " ",
      el("span", { title: path ?? id }, [reason(code), message, remedy].filter(Boolean).join(" – ")))),
      count > files.length ? el("li", {}, "…") : "");
  });
}

function showIndexing({ part, documents, of, text }, ready) {
  const values = { part: percent(part), documents: number(documents), of: number(of) };
  const what = hasText(`stage.${text}`) ? t(`stage.${text}`) : t("stage.last");
  showPart(part || null, part ? t(ready ? "indexing.ready" : "indexing.first", values) : tn("indexing.begun", of), what);
}

/** How much is done, 0 to 1; null: it has begun. */
function showPart(part, words, what) {
  if (part === null) byId("indexing-part").removeAttribute("value");
  else byId("indexing-part").value = part;
  byId("indexing-words").textContent = words;
  byId("indexing-text").textContent = what;
}
