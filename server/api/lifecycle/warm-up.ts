import { createRateConverter } from "../../audio/resample.ts";
import { formats } from "../request/formats.ts";

/** The sampling rates in Hz of the built-in engines. */
const engineRates = [16_000, 22_050];
/** The sampling rates in Hz that clients request most often, including the defaults. */
const answerRates = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];

/**
 * Creates the resampling filters and the codecs before the first request, because both are slow to create.
 */
export async function warmUpCodecs(): Promise<void> {
  for (const from of engineRates) for (const to of answerRates) createRateConverter(from, to);
  // One encoder compiles the code of its codec for all rates.
  for (const format of ["ogg", "mp3"] as const) await createAndClose(format, 24_000);
}

async function createAndClose(format: "ogg" | "mp3", rate: number): Promise<void> {
  const encoder = await formats[format].createEncoder(rate);
  encoder.close?.();
}
