/** Requests to the server: JSON in and out, errors with their remedy, and lines as they come. */

import { hasText, t } from "./texts.js";

/** What went wrong, in words, and what to do about it: the page's own where it has some for the code. */
export class Failure extends Error {
  constructor(text, remedy, code, status) {
    const own = `failure.${code}`;
    super(hasText(own) ? t(own) : text);
    Object.assign(this, { remedy: hasText(own) ? t(`${own}.remedy`) : remedy, code, status });
  }
}

/** @throws {Failure} if the server cannot be reached or refuses */
async function send(method, path, { body, headers = {}, signal } = {}) {
  let reply;
  try {
    reply = await fetch(`api/${path}`, { method, body, signal, headers: { "X-Swsdist": "1", ...headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(t("failure.network"), t("failure.network.remedy"), "network", 0);
  }
  if (!reply.ok) throw await failureOf(reply);
  return reply;
}

async function failureOf(reply) {
  const body = await reply.json().catch(() => ({}));
  const kind = reply.status === 401 || reply.status === 403 ? "failure.refused" : "failure.server";
  return new Failure(body.error || t(kind, { status: reply.status }), body.remedy ?? t(`${kind}.remedy`), body.code, reply.status);
}

/** The JSON of a GET. `query` leaves out what is null or empty. */
export async function get(path, query = {}, signal = undefined) {
  return (await send("GET", address(path, query), { signal })).json();
}

/** The JSON that POST, PATCH or DELETE gives back. */
export async function change(method, path, body = {}) {
  const headers = { "Content-Type": "application/json" };
  return (await send(method, path, { body: JSON.stringify(body), headers })).json();
}

/** End the session. */
export async function logout() {
  await send("POST", "../logout");
}

/** Send a file's bytes. */
export async function upload(path, file, name) {
  const headers = { "X-Name": encodeURIComponent(name), "Content-Type": file.type || "application/octet-stream" };
  return (await send("POST", path, { body: file, headers })).json();
}

/** The bytes of a sound, the second of the document at which they begin, and whether another was indexed there. */
export async function sound(query, signal = undefined) {
  const reply = await send("GET", address("sound", query), { signal });
  const begin = Number(reply.headers.get("X-Begin") ?? query.start ?? 0);
  return { bytes: await reply.arrayBuffer(), begin, replaced: reply.headers.has("X-Replaced") };
}

/** Send JSON, and give each line of the reply to `take` as it comes. */
export async function lines(path, body, take, signal) {
  const headers = { "Content-Type": "application/json" };
  const reply = await send("POST", path, { body: JSON.stringify(body), headers, signal });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Failure(t("failure.network"), t("failure.network.remedy"), "network", 0);
    });
    const parts = (rest + (value ?? "")).split("\n");
    rest = done ? "" : parts.pop();
    for (const part of parts.filter((line) => line.trim())) {
      const line = JSON.parse(part);
      if (line.error) throw new Failure(line.error, line.remedy ?? "", line.code, 400);
      take(line);
    }
    if (done) return;
  }
}

/** A path below the server's own with a query, for requests and links. */
export function address(path, query = {}) {
  const named = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(named).toString();
  return text ? `${path}?${text}` : path;
}
