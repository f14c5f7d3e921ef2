/** Creates a player for 16-bit PCM. It plays each piece directly after the previous piece. */
export function createPlayer() {
  let context;
  let rate = 24000;
  let begin;
  let end = 0;
  let samplesSoFar = 0;
  let odd = new Uint8Array(0);
  let listener;
  let frame;
  let overTimer;

  const stop = () => {
    cancelAnimationFrame(frame);
    clearTimeout(overTimer);
    listener = undefined;
    void context?.close();
    context = undefined;
  };

  const decode = (base64) => {
    const text = atob(base64);
    const bytes = new Uint8Array(odd.length + text.length);
    bytes.set(odd);
    for (let i = 0; i < text.length; i++) bytes[odd.length + i] = text.charCodeAt(i);
    const whole = bytes.length & ~1;
    odd = bytes.slice(whole);
    const view = new DataView(bytes.buffer, 0, whole);
    return Float32Array.from({ length: whole / 2 }, (_, i) => view.getInt16(i * 2, true) / 32768);
  };

  const tick = () => {
    if (!context) return;
    if (listener && begin !== undefined) listener(context.currentTime - begin);
    frame = requestAnimationFrame(tick);
  };

  return {
    /** Starts a new stream. @param samplingRate Hz. */
    start(samplingRate) {
      stop();
      context = newContext(samplingRate);
      rate = samplingRate;
      begin = undefined;
      samplesSoFar = 0;
      odd = new Uint8Array(0);
      tick();
    },
    /** Plays a piece of audio. @returns the samples, from -1 to 1. */
    add(base64) {
      const samples = decode(base64);
      if (!context || samples.length === 0) return samples;
      const buffer = context.createBuffer(1, samples.length, rate);
      buffer.copyToChannel(samples, 0);
      const source = context.createBufferSource();
      source.buffer = buffer;
      source.connect(context.destination);
      const now = context.currentTime;
      begin ??= now + 0.05; // The playback starts with a short delay, so that the next piece arrives in time.
      if (samplesSoFar === 0) end = begin;
      if (end < now) {
        begin += now - end; // The player ran out of audio, so the words are highlighted later by this time.
        end = now;
      }
      source.start(end);
      end += buffer.duration;
      samplesSoFar += samples.length;
      return samples;
    },
    seconds: () => samplesSoFar / rate,
    /** Seconds of audio that are still to be played. */
    left: () => (context ? Math.max(0, end - context.currentTime) : 0),
    /** @param callback called with the played seconds at each frame of the screen. */
    onTime(callback) {
      listener = callback;
    },
    whenOver(callback) {
      const left = context ? Math.max(0, end - context.currentTime) : 0;
      clearTimeout(overTimer);
      overTimer = setTimeout(callback, left * 1000);
    },
    stop,
  };
}

/**
 * With the rate of the speech the browser plays pieces without a seam, because it converts the rate of all
 * audio at once and not of each piece. Some browsers do not have every rate.
 */
function newContext(sampleRate) {
  try {
    return new AudioContext({ sampleRate });
  } catch {
    return new AudioContext();
  }
}
