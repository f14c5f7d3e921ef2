import { createRateConverter } from "../../audio/resample.ts";
import { formats } from "../request/formats.ts";

/** Sampling rates in Hz of the engines that are part of the server. */
const engineRates = [16_000, 22_050];
/** Sampling rates in Hz that clients request most, and the default ones. */
const answerRates = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];

/**
 * Prepares what the first request would otherwise wait for: the filters between sampling rates, and the
 * codecs.
 */
export async function warmUpCodecs(): Promise<void> {
  for (const from of engineRates) for (const to of answerRates) createRateConverter(from, to);
  for (const format of ["ogg", "mp3"] as const) await lend(format, 24_000); // Their code is compiled once, for all rates.
}

async function lend(format: "ogg" | "mp3", rate: number): Promise<void> {
  const encoder = await formats[format].createEncoder(rate);
  encoder.close?.();
}
