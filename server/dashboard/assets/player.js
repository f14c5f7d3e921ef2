/** Creates a player for 16-bit PCM, which plays each piece directly after the previous piece. */
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
    /** Starts a new stream. @param samplingRate the sampling rate in Hz. */
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
        // The player has run out of audio, so the playback of all later words is delayed by this time.
        begin += now - end;
        end = now;
      }
      source.start(end);
      end += buffer.duration;
      samplesSoFar += samples.length;
      return samples;
    },
    seconds: () => samplesSoFar / rate,
    /** Returns the seconds of audio that were not played yet. */
    left: () => (context ? Math.max(0, end - context.currentTime) : 0),
    /** Sets the function that is called with the played seconds at each frame of the screen. */
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
 * Creates an audio context with the sampling rate of the speech. The browser then converts the rate of the
 * whole stream, and the pieces join without clicks. A browser that does not support the rate gets a context
 * with its default rate.
 */
function newContext(sampleRate) {
  try {
    return new AudioContext({ sampleRate });
  } catch {
    return new AudioContext();
  }
}
