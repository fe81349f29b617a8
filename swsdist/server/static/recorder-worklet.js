/** In the audio thread: gathers the microphone's samples, and hands them over 20 times a second. */

class Recorder extends AudioWorkletProcessor {
  constructor() {
    super();
    this.block = new Float32Array(Math.ceil(sampleRate / 20));
    this.filled = 0;
  }

  process([[channel]]) {
    for (const sample of channel ?? []) {
      this.block[this.filled++] = sample;
      if (this.filled === this.block.length) {
        this.port.postMessage(this.block.slice());
        this.filled = 0;
      }
    }
    return true;
  }
}

registerProcessor("recorder", Recorder);
