/** What was found of saved words in recordings that are new in the watched folder. */

import { change, get } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { subscribe } from "./events.js";
import { HitCard } from "./hit.js";
import { attempt, say, showFailure } from "./notices.js";
import { placeOfHit } from "./places.js";
import { currentView } from "./routes.js";
import { number, t, tn } from "./texts.js";
import { server } from "./state.js";

let cards = [];
let shown = -1; // the number of news when they were read

export function startNews() {
  byId("news-seen").addEventListener("click", () => attempt(seen));
  subscribe("state", (state) => {
    byId("to-news").hidden = !state.watch && !state.news;
    byId("news-number").textContent = state.news ? number(state.news) : "";
    byId("news-folder").textContent = state.watch ? t("news.folder", { folder: state.watch.folder }) : "";
    if (currentView() === "news" && shown !== state.news) attempt(read);
  });
  addEventListener("hashchange", () => currentView() === "news" && attempt(read));
}

async function read() {
  shown = server.state.news;
  const { news } = await get("news");
  cards.forEach((card) => card.close());
  cards = [];
  byId("news-none").hidden = news.length > 0;
  byId("news-seen").hidden = !news.length;
  fill(byId("news"), ...news.map(section));
}

function section({ entry_id, form, hits, documents }) {
  const list = hits.map((hit, n) => {
    const card = new HitCard(hit, { judge: (judged, verdict) => judge(entry_id, judged, verdict), note: () => {}, reached: () => {} });
    card.show({ rank: n + 1, token: null, current: true });
    cards.push(card);
    return card.element;
  });
  const count = t("news.count", { hits: tn("hits.count", hits.length), documents: tn("news.documents", documents) });
  return el("section", {}, el("h3", {}, el("a.form", { href: `#search/${entry_id}` }, form), " ", el("span.quiet", {}, count)), ...list);
}

async function judge(entryId, card, verdict) {
  const { start, end } = card.stretch;
  const note = card.note.value.trim();
  const body = { place: { ...placeOfHit(card.hit), start, end }, verdict, score: card.hit.score, ...(note && { note }) };
  try {
    const { token } = await change("POST", `entries/${entryId}/tokens`, body);
    card.show({ rank: Number(card.rank.textContent), token, current: true });
    say(t("hit.said", { verdict: t(`verdict.${verdict}`) }), { seen: false });
  } catch (error) {
    showFailure(error, () => judge(entryId, card, verdict));
  }
}

async function seen() {
  await change("POST", "news/seen");
  await read();
}
