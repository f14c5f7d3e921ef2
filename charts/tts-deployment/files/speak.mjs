// The script of `helm test`. It checks that the operator is ready, or that the API of a TtsDeployment is
// healthy. With the URL of an API it also requests speech and checks the audio. The script is plain
// JavaScript without packages, because the pod receives it as an argument of Node.
const { OPERATOR_URL, HEALTH_URL, SPEAK_URL, SPEAK_REQUEST, SPEAK_API_KEY } = process.env;

try {
  if (OPERATOR_URL) await checkOperator();
  if (HEALTH_URL) await checkHealth();
  if (SPEAK_URL) await checkSpeech();
  else console.log("no speech was requested: to include speech, set test.apiKeySecret (and test.endpoint) in the chart's values");
} catch (error) {
  console.error(`FAILED: ${error.message}${error.cause ? ` (${error.cause.message})` : ""}`);
  process.exitCode = 1;
}

async function checkOperator() {
  const response = await request(`${OPERATOR_URL}/readyz`, {});
  if (!response.ok) throw new Error(`the operator is not ready: /readyz returned ${response.status}`);
  console.log("the operator is ready");
}

async function checkHealth() {
  const response = await request(`${HEALTH_URL}/health`, {});
  const text = await response.text();
  if (!response.ok) throw new Error(`${HEALTH_URL} is not healthy: ${response.status} ${text.slice(0, 500)}`);
  console.log(`${HEALTH_URL} is healthy: ${text}`);
}

async function checkSpeech() {
  const headers = { "content-type": "application/json", accept: "application/json" };
  if (SPEAK_API_KEY) headers.authorization = `Bearer ${SPEAK_API_KEY.trim()}`;
  const body = JSON.stringify({ ...JSON.parse(SPEAK_REQUEST), audioFormat: "wav" });
  const started = performance.now();
  const response = await request(`${SPEAK_URL}/v1/svc-tts`, { method: "POST", headers, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${SPEAK_URL} responded with status ${response.status}: ${text.slice(0, 500)}`);
  const audio = readWave(Buffer.from(JSON.parse(text).audioContent ?? "", "base64"));
  const durationMs = Math.round(performance.now() - started);
  console.log(`${SPEAK_URL} returned ${audio.seconds.toFixed(2)} s of audio at ${audio.rate} Hz after ${durationMs} ms`);
}

async function request(url, options) {
  try {
    return await fetch(url, { ...options, signal: AbortSignal.timeout(60_000) });
  } catch (cause) {
    throw new Error(`${url} was not reachable`, { cause: cause.cause ?? cause });
  }
}

/**
 * Reads a RIFF WAVE file of 16-bit mono PCM. Throws if the file has another format, if the audio is silent,
 * or if it is too short for a sentence.
 */
function readWave(wav) {
  if (wav.toString("latin1", 0, 4) !== "RIFF" || wav.toString("latin1", 8, 12) !== "WAVE") {
    throw new Error(`the response is not a RIFF WAVE file: ${wav.length} bytes`);
  }
  let data;
  let rate = 0;
  for (let at = 12; at + 8 <= wav.length; ) {
    const length = wav.readUInt32LE(at + 4);
    const chunk = wav.subarray(at + 8, at + 8 + length);
    const name = wav.toString("latin1", at, at + 4);
    if (name === "fmt ") rate = chunk.readUInt32LE(4);
    if (name === "data") data = chunk;
    at += 8 + length + (length % 2);
  }
  if (!data || rate === 0) throw new Error("the WAVE file has no format chunk or no data chunk");
  const samples = Math.floor(data.length / 2);
  let energy = 0;
  for (let i = 0; i < samples; i++) energy += data.readInt16LE(i * 2) ** 2;
  const loudness = Math.sqrt(energy / Math.max(samples, 1));
  const seconds = samples / rate;
  if (seconds < 0.5) throw new Error(`the audio is ${seconds.toFixed(2)} s long, too short for a sentence`);
  if (loudness < 100) throw new Error(`the audio is silent (loudness ${loudness.toFixed(0)} of 32768)`);
  return { seconds, rate };
}
