/** Waveforms and spectrograms on a canvas, in the colours of the page. */

import { RATE } from "./sounds.js";
import { peaks, spectrogram } from "./spectrum.js";

const WAVE = 0.36; // of the height; the spectrogram has the rest
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Call a function when light turns to dark or back. */
export function onColours(listener) {
  dark.addEventListener("change", listener);
}

function colour(canvas, name) {
  const hex = getComputedStyle(canvas).getPropertyValue(name).trim();
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** Fit a canvas to its place on the page; gives its context and size in pixels. */
function sized(canvas) {
  const scale = Math.min(2, devicePixelRatio || 1);
  const [width, height] = [Math.round(canvas.clientWidth * scale), Math.round(canvas.clientHeight * scale)];
  Object.assign(canvas, { width, height });
  return { context: canvas.getContext("2d"), width, height };
}

/** Draw the waveform of low and high peaks in the rectangle from the top down to `height`. */
function drawWave(context, canvas, { low, high }, width, height) {
  const most = Math.max(0.02, ...high, ...Array.from(low, (value) => -value));
  const [r, g, b] = colour(canvas, "--wave");
  context.fillStyle = `rgb(${r} ${g} ${b})`;
  const column = width / low.length;
  for (let n = 0; n < low.length; n++) {
    const top = (height / 2) * (1 - (0.94 * high[n]) / most);
    const bottom = (height / 2) * (1 - (0.94 * low[n]) / most);
    context.fillRect(n * column, top, Math.max(1, column - 0.2), Math.max(1, bottom - top));
  }
}

/** Draw an overview: peaks alone. */
export function drawOverview(canvas, found) {
  const { context, width, height } = sized(canvas);
  if (width) drawWave(context, canvas, found, width, height);
}

/** Draw a clip: its waveform, and its spectrogram below. */
export function drawClip(canvas, buffer) {
  const { context, width, height } = sized(canvas);
  if (!width) return;
  const samples = buffer.getChannelData(0);
  const split = Math.round(height * WAVE);
  drawWave(context, canvas, peaks(samples, Math.min(width, 1200)), width, split);
  const { levels, columns, rows } = spectrogram(samples, RATE, Math.min(480, Math.ceil(width / 2)));
  const [low, high] = [colour(canvas, "--spectrum-quiet"), colour(canvas, "--spectrum-loud")];
  const image = new ImageData(columns, rows);
  levels.forEach((level, n) => {
    for (let c = 0; c < 3; c++) image.data[4 * n + c] = low[c] + ((high[c] - low[c]) * level) / 255;
    image.data[4 * n + 3] = 255;
  });
  const small = new OffscreenCanvas(columns, rows);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingQuality = "high";
  context.drawImage(small, 0, split, width, height - split);
}
