import { createRateConverter } from "../../audio/resample.ts";
import { formats } from "../request/formats.ts";

/** Hz, of the engines that come with the server. */
const engineRates = [16_000, 22_050];
/** Hz, that callers ask for most, and those that they get where they ask for none. */
const answerRates = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];

/** Makes ready what the first request of its kind would else wait for: filters between rates, and the codecs. */
export async function warmUpCodecs(): Promise<void> {
  for (const from of engineRates) for (const to of answerRates) createRateConverter(from, to);
  for (const format of ["ogg", "mp3"] as const) await lend(format, 24_000); // their code is compiled once, whatever the rate
}

async function lend(format: "ogg" | "mp3", rate: number): Promise<void> {
  const encoder = await formats[format].createEncoder(rate);
  encoder.close?.();
}
