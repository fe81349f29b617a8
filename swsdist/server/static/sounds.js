/** Sounds: clips from the server, decoded once, played from memory at once. */

import { sound } from "./api.js";
import { soundQuery } from "./places.js";
import { attempt } from "./notices.js";
import { subscribe } from "./events.js";

/** Samples a second of decoded clips. */
export const RATE = 48000;
const KEPT = 80;

const clips = new Map();
const decoder = new OfflineAudioContext(1, 1, RATE);
let player = null;
let playing = null;

/**
 * The sound of a place with `pad` s on both sides.
 * @returns {Promise<{buffer: AudioBuffer, begin: number, end: number}>} seconds in the document or sound
 */
export function clip(place, pad) {
  const query = soundQuery(place, pad);
  const key = JSON.stringify(query);
  let kept = clips.get(key);
  clips.delete(key);
  kept ??= decode(query).catch((error) => {
    clips.delete(key);
    throw error;
  });
  clips.set(key, kept);
  if (clips.size > KEPT) clips.delete(clips.keys().next().value);
  return kept;
}

async function decode(query) {
  const { bytes, begin, replaced } = await sound(query);
  const buffer = await decoder.decodeAudioData(bytes);
  return { buffer, begin, end: begin + buffer.duration, replaced };
}

// Of another state of the archive a recording may be another.
let archive = null;
subscribe("state", (state) => {
  if (state.archive !== archive) clips.clear();
  archive = state.archive;
});

/** Stop what plays. */
export function stop() {
  playing?.end();
}

export function isPlaying(owner) {
  return playing?.owner === owner;
}

/**
 * Play a part of a clip; what played before stops.
 * @param owner who asked: playing the same again stops it
 * @param {{buffer: AudioBuffer, begin: number}} from
 * @param {(at: number|null) => void} moved told where it plays, and null at the end
 */
export function play(owner, from, start, end, moved = () => {}) {
  stop();
  player ??= new AudioContext({ latencyHint: "interactive" });
  player.resume();
  const source = new AudioBufferSourceNode(player, { buffer: from.buffer });
  source.connect(player.destination);
  const offset = Math.max(0, start - from.begin);
  const begun = player.currentTime;
  const mine = { owner, end: finish };
  playing = mine;
  source.start(0, offset, Math.max(0.02, end - start));
  source.onended = finish;
  requestAnimationFrame(follow);

  function follow() {
    if (playing !== mine) return;
    moved(Math.min(end, start + player.currentTime - begun));
    requestAnimationFrame(follow);
  }
  function finish() {
    if (playing !== mine) return;
    playing = null;
    source.onended = null;
    source.stop();
    moved(null);
  }
}

/** Play a place, or stop it if it plays. */
export async function playPlace(owner, place, { pad = 0.6, around = 0, moved } = {}) {
  if (isPlaying(owner)) return stop();
  const from = await attempt(() => clip(place, pad));
  if (from) play(owner, from, Math.max(from.begin, place.start - around), Math.min(from.end, place.end + around), moved);
}
