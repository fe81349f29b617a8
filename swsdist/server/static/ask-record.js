/** Ask by voice: record, see the level, stop; the recording goes to the server and is trimmed. */

import { Failure, upload } from "./api.js";
import { byId } from "./dom.js";
import { attempt, say, showFailure } from "./notices.js";
import { record } from "./recorder.js";
import { stop } from "./sounds.js";
import { clock, keyMark, t } from "./texts.js";
import { closeTrim, showSound } from "./trim.js";
import { server } from "./state.js";

let recording = null;

export function startRecording() {
  byId("record-button").addEventListener("click", toggleRecording);
  show();
}

function show() {
  const button = byId("record-button");
  button.replaceChildren(recording ? "■ " : "● ", t(recording ? "record.stop" : "record.start"), keyMark("r"));
  button.dataset.recording = Boolean(recording);
  byId("record-level").hidden = !recording;
  byId("record-clock").hidden = !recording;
}

/** Begin to record, or end and send what was recorded. */
export async function toggleRecording() {
  if (recording) return finish();
  stop();
  if (!navigator.mediaDevices) return showFailure(new Failure(t("record.insecure"), t("record.insecure.remedy")));
  try {
    const begun = performance.now();
    recording = await record((level) => {
      const seconds = (performance.now() - begun) / 1000;
      byId("record-level").value = level;
      byId("record-clock").textContent = clock(seconds);
      if (recording && seconds >= server.state.limits.upload_seconds) finish();
    });
    say(t("record.begun"), { seen: false });
  } catch (error) {
    const refused = error.name === "NotAllowedError";
    const key = refused ? "record.refused" : "record.missing";
    showFailure(new Failure(t(key), t(`${key}.remedy`)));
  }
  show();
}

async function finish() {
  const ended = recording;
  recording = null;
  show();
  closeTrim();
  const file = await ended.end();
  await attempt(async () => {
    const sound = await upload("sounds", file, "microphone.wav");
    say(t("record.done"), { seen: false });
    showSound(byId("asked-sound"), sound, t("examples.microphone"));
  }, "sound");
}
