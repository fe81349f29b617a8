/** The microphone, as PCM: samples come from an AudioWorklet, and become a WAV file of 16 bit. */

/** Begin to record. `level` receives the loudness (0..1) meanwhile. */
export async function record(level) {
  const constraints = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  const stream = await navigator.mediaDevices.getUserMedia({ audio: constraints });
  const context = new AudioContext();
  await context.audioWorklet.addModule(new URL("recorder-worklet.js", import.meta.url));
  const node = new AudioWorkletNode(context, "recorder", { numberOfOutputs: 0 });
  const chunks = [];
  node.port.onmessage = ({ data }) => {
    chunks.push(data);
    level(Math.max(...data.map(Math.abs)));
  };
  context.createMediaStreamSource(stream).connect(node);
  await context.resume();
  return {
    /** End, and give the WAV file. */
    async end() {
      for (const track of stream.getTracks()) track.stop();
      await context.close();
      return wave(chunks, context.sampleRate);
    },
  };
}

/** A WAV file, 16 bit, one channel. */
function wave(chunks, rate) {
  const count = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const view = new DataView(new ArrayBuffer(44 + 2 * count));
  const word = (at, text) => [...text].forEach((letter, n) => view.setUint8(at + n, letter.charCodeAt(0)));
  word(0, "RIFF");
  view.setUint32(4, 36 + 2 * count, true);
  word(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  word(36, "data");
  view.setUint32(40, 2 * count, true);
  let at = 44;
  for (const chunk of chunks) {
    for (const sample of chunk) {
      view.setInt16(at, Math.round(32767 * Math.max(-1, Math.min(1, sample))), true);
      at += 2;
    }
  }
  return new Blob([view], { type: "audio/wav" });
}
