/** Pictures of sound: peaks of the waveform, and a spectrogram in grey levels. */

const TOP = 8000; // Hz: what tells speech sounds apart lies below
const RANGE = 55; // dB between the loudest and white
const SIZE = 1024; // of the transform
const SPAN = 480; // samples of a window: 10 ms at 48 kHz, short enough to tell one beat of the voice from the next

const hann = Float32Array.from({ length: SPAN }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / SPAN));
const cosines = Float32Array.from({ length: SIZE / 2 }, (_, n) => Math.cos((2 * Math.PI * n) / SIZE));
const sines = Float32Array.from({ length: SIZE / 2 }, (_, n) => -Math.sin((2 * Math.PI * n) / SIZE));
const swapped = Uint16Array.from({ length: SIZE }, (_, n) => {
  let turned = 0;
  for (let bit = 1, rest = n; bit < SIZE; bit <<= 1, rest >>= 1) turned = (turned << 1) | (rest & 1);
  return turned;
});

/** Fast Fourier transform of SIZE points, in place; the input is in the order of `swapped`. */
function transform(re, im) {
  for (let half = 1; half < SIZE; half *= 2) {
    const step = SIZE / (2 * half);
    for (let first = 0; first < SIZE; first += 2 * half) {
      for (let k = 0; k < half; k++) {
        const [a, b, w] = [first + k, first + k + half, k * step];
        const x = re[b] * cosines[w] - im[b] * sines[w];
        const y = re[b] * sines[w] + im[b] * cosines[w];
        re[b] = re[a] - x;
        im[b] = im[a] - y;
        re[a] += x;
        im[a] += y;
      }
    }
  }
}

/** Lowest and highest sample of each column: [columns] each. */
export function peaks(samples, columns) {
  const [low, high] = [new Float32Array(columns), new Float32Array(columns)];
  for (let column = 0; column < columns; column++) {
    const from = Math.floor((column * samples.length) / columns);
    const to = Math.max(from + 1, Math.floor(((column + 1) * samples.length) / columns));
    for (let n = from; n < to; n++) {
      if (samples[n] < low[column]) low[column] = samples[n];
      if (samples[n] > high[column]) high[column] = samples[n];
    }
  }
  return { low, high };
}

/**
 * Spectrogram from 0 to 8 kHz, the highest first.
 * @returns {{levels: Uint8ClampedArray, columns: number, rows: number}} levels [rows, columns], 255 the loudest
 */
export function spectrogram(samples, rate, columns) {
  const rows = Math.min(SIZE / 2, Math.ceil((TOP * SIZE) / rate));
  const power = new Float32Array(rows * columns);
  const [re, im] = [new Float32Array(SIZE), new Float32Array(SIZE)];
  let loudest = -Infinity;
  for (let column = 0; column < columns; column++) {
    const first = Math.round(((column + 0.5) * samples.length) / columns) - SPAN / 2;
    re.fill(0);
    for (let n = 0; n < SPAN; n++) {
      const at = first + n;
      const inside = at > 0 && at < samples.length;
      re[swapped[n]] = inside ? (samples[at] - 0.95 * samples[at - 1]) * hann[n] : 0;
    }
    im.fill(0);
    transform(re, im);
    for (let row = 0; row < rows; row++) {
      const level = 10 * Math.log10(re[row] ** 2 + im[row] ** 2 + 1e-10);
      power[(rows - 1 - row) * columns + column] = level;
      loudest = Math.max(loudest, level);
    }
  }
  const levels = Uint8ClampedArray.from(power, (level) => (255 * (level - loudest + RANGE)) / RANGE);
  return { levels, columns, rows };
}
