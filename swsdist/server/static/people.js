/** Several people at once: who one is, and what the others changed, asked for every few seconds. */

import { change, get, logout } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { emit, subscribe } from "./events.js";
import { attempt, say } from "./notices.js";
import { readState, server } from "./state.js";
import { t, tn } from "./texts.js";

const EVERY = 3000; // ms
const SLOW = 5; // turns between two questions for the state while nothing is indexed

let last = 0;
let turn = 0;
let lost = false;

export function startPeople() {
  byId("person-button").addEventListener("click", () => byId("person-dialog").showModal());
  byId("person-form").addEventListener("submit", () => attempt(keepPerson));
  byId("leave").addEventListener("click", () => attempt(leave));
  subscribe("state", ({ person, people, session }) => {
    byId("leave").hidden = !session;
    byId("person-name").textContent = person;
    if (!byId("person-dialog").open) byId("person").value = person;
    fill(byId("people"), ...people.map((value) => el("option", { value })));
  });
}

/** Begin to ask what others change. */
export function startAskingOthers() {
  last = server.state.change;
  setTimeout(ask, EVERY);
}

async function keepPerson() {
  const person = byId("person").value.trim();
  if (!person) return;
  await change("POST", "person", { person });
  await readState();
  say(t("person.kept", { person }));
}

/** End the session; only who has the address or the password comes back. */
async function leave() {
  await logout();
  location.replace(location.pathname);
}

/** Whether the server has work whose progress is shown. */
function isBusy() {
  return server.state.indexing || server.state.preparing;
}

/** Ask what changed; a notice says once that the server does not answer, and the question is repeated. */
async function ask() {
  try {
    if (!document.hidden) await readChanges();
    if (lost) say(t("failure.back"));
    setLost(false);
  } catch {
    setLost(true);
  }
  setTimeout(ask, isBusy() ? EVERY / 3 : EVERY);
}

async function readChanges() {
  const { changes, change: newest } = await get("changes", { after: last });
  last = newest;
  const others = changes.filter(({ person }) => person !== server.state.person);
  if (changes.length) emit("changes", changes);
  if (others.length) {
    const names = [...new Set(others.map(({ person }) => person))].join(", ");
    say(tn("people.changed", others.length, { names }));
  }
  if (isBusy() || turn++ % SLOW === 0) await readState();
}

function setLost(now) {
  lost = now;
  byId("lost").hidden = !now;
}
