/** Ask with a file: chosen or dropped; any audio that the server can read. */

import { Failure, upload } from "./api.js";
import { byId } from "./dom.js";
import { attempt, say, showFailure } from "./notices.js";
import { number, t } from "./texts.js";
import { closeTrim, showSound } from "./trim.js";
import { server } from "./state.js";

export function startUpload() {
  const input = byId("upload-file");
  const zone = byId("upload-zone");
  input.addEventListener("change", () => input.files.length && send(input.files[0]));
  for (const event of ["dragover", "dragleave", "drop"]) {
    zone.addEventListener(event, (drag) => {
      drag.preventDefault();
      zone.classList.toggle("over", event === "dragover");
    });
  }
  zone.addEventListener("drop", (drag) => drag.dataTransfer.files.length && send(drag.dataTransfer.files[0]));
}

async function send(file) {
  const most = server.state.limits.upload_bytes;
  byId("upload-file").value = ""; // else the same file cannot be chosen again
  closeTrim();
  if (file.size > most) {
    const large = new Failure(t("upload.large", { name: file.name }), t("upload.large.remedy", { most: number(most / 1e6) }));
    return showFailure(large, null, "sound");
  }
  say(t("upload.sending", { name: file.name }));
  await attempt(async () => {
    showSound(byId("asked-sound"), await upload("sounds", file, file.name), file.name);
    say(t("upload.sent", { name: file.name }));
  }, "sound");
}
