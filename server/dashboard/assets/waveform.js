/** Creates a chart of the loudness of speech on a canvas. */
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
      const barHeight = Math.max(1, bar * height);
      pen.fillRect(i * step, (height - barHeight) / 2, Math.max(step * 0.7, 0.5), barHeight);
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
    /** Draws further samples. @param samples the samples, from -1 to 1. */
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
    /** Marks the played part. @param share the played share of the audio, from 0 to 1. */
    mark(share) {
      at = share;
      draw();
    },
  };
}
