/** Ask with a stretch of a recording: choose it, see it whole, go to a place, mark the word. */

import { get } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { attempt } from "./notices.js";
import { drawOverview, onColours } from "./pictures.js";
import { alsoIn } from "./places.js";
import { clock, t, tn } from "./texts.js";
import { showTrim } from "./trim.js";
import { server } from "./state.js";

const PAGE = 50;
const WINDOWS = [2, 4, 8, 16, 30]; // s shown at once

const listed = { text: "", offset: 0, total: 0, recordings: [] };
let chosen = null; // {recording, at, span (index of WINDOWS), found (overview)}
let typing = 0;

/** Listen to the panel; gives what to do when it is opened. */
export function startMarking() {
  byId("recordings-text").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => list(byId("recordings-text").value.trim()), 250);
  });
  byId("recordings-more").addEventListener("click", () => list(listed.text, listed.recordings.length));
  byId("mark-place").addEventListener("input", ({ target }) => moveTo(target.valueAsNumber));
  byId("mark-place").addEventListener("change", showWindow);
  byId("mark-closer").addEventListener("click", () => zoom(-1));
  byId("mark-wider").addEventListener("click", () => zoom(1));
  byId("mark-overview").addEventListener("click", ({ offsetX, target }) => {
    moveTo((offsetX / target.clientWidth) * chosen.recording.duration - WINDOWS[chosen.span] / 2);
    showWindow();
  });
  byId("mark-other").addEventListener("click", choose);
  onColours(() => chosen?.found && drawOverview(byId("mark-overview"), chosen.found));
  new ResizeObserver(() => chosen?.found && drawOverview(byId("mark-overview"), chosen.found)).observe(byId("mark-overview"));
  return () => !listed.recordings.length && list("");
}

async function list(text, offset = 0) {
  const none = { recordings: [], total: 0, count: 0 };
  const { recordings, total, count } = (await attempt(() => get("recordings", { text, offset }))) ?? none;
  Object.assign(listed, { text, total, recordings: offset ? [...listed.recordings, ...recordings] : recordings });
  const items = listed.recordings.map((recording) => el("li", {}, el("button.plain", {
    type: "button", on: { click: () => open(recording) },
  }, el("span", {}, name(recording)), el("span.quiet", {}, ` ${about(recording)}`))));
  fill(byId("recordings"), ...items);
  byId("recordings-count").textContent = tn("mark.recordings", count);
  byId("recordings-more").hidden = listed.recordings.length >= total || total <= PAGE;
}

function about(recording) {
  const { speaker, date, duration } = recording;
  return [speaker, date, clock(duration, 0), alsoIn(recording)].filter(Boolean).join(" · ");
}

function name({ recording, channel }) {
  return channel > 1 ? t("mark.channel", { recording, channel }) : recording;
}

function choose() {
  chosen = null;
  byId("mark-recording").hidden = true;
  byId("mark-list").hidden = false;
  byId("recordings-text").focus();
}

/** Open a recording, at a place if one is given. */
async function open(recording, at = 0) {
  chosen = { recording, at, span: 2, found: null };
  byId("mark-list").hidden = true;
  byId("mark-recording").hidden = false;
  byId("mark-name").textContent = name(recording);
  byId("mark-place").max = recording.duration;
  byId("mark-place").focus();
  moveTo(at);
  showWindow();
  const { doc_id, channel, duration } = recording;
  const found = await attempt(() => get("overview", { doc_id, channel, start: 0, end: duration, points: 800 }));
  if (!found || chosen?.recording !== recording) return;
  chosen.found = found;
  drawOverview(byId("mark-overview"), found);
}

function moveTo(at) {
  const span = WINDOWS[chosen.span];
  const { duration } = chosen.recording;
  chosen.at = Math.max(0, Math.min(at, duration - span));
  const place = byId("mark-place");
  place.value = chosen.at;
  place.setAttribute("aria-valuetext", clock(chosen.at));
  byId("mark-at").textContent = t("mark.at", { from: clock(chosen.at), to: clock(Math.min(duration, chosen.at + span)) });
  byId("mark-view").style.left = `${(100 * chosen.at) / duration}%`;
  byId("mark-view").style.width = `${(100 * Math.min(span, duration)) / duration}%`;
}

function zoom(step) {
  const before = WINDOWS[chosen.span];
  const most = server.state.limits.clip_seconds;
  const span = Math.max(0, Math.min(WINDOWS.length - 1, chosen.span + step));
  if (WINDOWS[span] > most && step > 0) return;
  chosen.span = span;
  moveTo(chosen.at + (before - WINDOWS[span]) / 2);
  showWindow();
}

/** Show the sound of the window, with a stretch of half a second marked in the middle. */
function showWindow() {
  const { recording, at } = chosen;
  const end = Math.min(recording.duration, at + WINDOWS[chosen.span]);
  const { doc_id, channel } = recording;
  const middle = (at + end) / 2;
  const half = Math.min(0.3, (end - at) / 4);
  const place = { doc_id, channel, sound: null, start: middle - half, end: middle + half };
  const window = { doc_id, channel, sound: null, start: at, end };
  showTrim(byId("asked-sound"), { place, window, name: name(recording) });
}
