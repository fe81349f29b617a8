/** The page begins here. */

import { startAsking } from "./ask.js";
import { startBeside } from "./beside.js";
import { startCandidates } from "./candidates.js";
import { byId, el, fill } from "./dom.js";
import { startEntry } from "./entry.js";
import { subscribe } from "./events.js";
import { startExamples } from "./examples.js";
import { startGlossary } from "./glossary.js";
import { startHits } from "./hits.js";
import { startKeys } from "./keys.js";
import { readState } from "./state.js";
import { startLikely } from "./likely.js";
import { startNarrow } from "./narrow.js";
import { startNews } from "./news.js";
import { showFailure } from "./notices.js";
import { startAskingOthers, startPeople } from "./people.js";
import { startProgress } from "./progress.js";
import { noteWord, startRoutes } from "./routes.js";
import { currentLanguage, firstLanguage, readTexts, t, writeTexts } from "./texts.js";
import { readEntries } from "./word.js";

function offerLanguages({ languages }) {
  const select = byId("language");
  if (select.options.length) return;
  fill(select, ...languages.map((tag) => el("option", { value: tag, selected: tag === currentLanguage() }, t(`language.${tag}`))));
  select.addEventListener("change", () => {
    localStorage.setItem("language", select.value);
    location.reload();
  });
}

async function start() {
  await readTexts(firstLanguage());
  writeTexts();
  document.title = t("page.title");
  const lists = [startGlossary, startEntry, startCandidates, startNews];
  const parts = [startProgress, startNarrow, startAsking, startExamples, startHits, startLikely, ...lists];
  for (const startPart of [...parts, startBeside, startPeople, startKeys]) startPart();
  subscribe("state", offerLanguages);
  subscribe("made", noteWord);
  await begin();
}

/** What needs the server; tried again by the person if it fails. */
async function begin() {
  try {
    await readState();
    await readEntries();
    await startRoutes();
    startAskingOthers();
    document.body.dataset.ready = "yes";
  } catch (error) {
    showFailure(error, begin);
  }
}

start();
