/** Draws the loudness of speech, piece by piece, on one canvas. */
export function chart(canvas) {
  const perBar = 512;
  let bars = [];
  let peak = 0;
  let count = 0;
  let at = 0;

  const draw = () => {
    const { width, height } = canvas;
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    pen.clearRect(0, 0, width, height);
    const step = width / Math.max(bars.length, 200);
    bars.forEach((bar, i) => {
      pen.fillStyle = style.getPropertyValue(i / bars.length < at ? "--accent" : "--quiet");
      const tall = Math.max(1, bar * height);
      pen.fillRect(i * step, (height - tall) / 2, Math.max(step * 0.7, 0.5), tall);
    });
  };

  return {
    clear() {
      bars = [];
      peak = 0;
      count = 0;
      at = 0;
      draw();
    },
    /** @param samples from -1 to 1. */
    add(samples) {
      for (const sample of samples) {
        peak = Math.max(peak, Math.abs(sample));
        count += 1;
        if (count < perBar) continue;
        bars.push(peak);
        peak = 0;
        count = 0;
      }
      draw();
    },
    /** @param share of the audio that was played, from 0 to 1. */
    mark(share) {
      at = share;
      draw();
    },
  };
}
