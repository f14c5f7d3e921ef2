import type { PlannedPhone } from "./code-generator.ts";
import type { CodecTables } from "./model-files.ts";

/** Log F0 of each frame against the speaker's mean: straight lines through two points of each sound. */
export function melody(plan: readonly PlannedPhone[], { pitches }: CodecTables): Float64Array {
  const points: { at: number; height: number }[] = [];
  let begin = 0;
  for (const { frames, pitch } of plan) {
    points.push({ at: begin + frames / 4 - 0.5, height: pitches[2 * pitch] ?? 0 });
    points.push({ at: begin + (3 * frames) / 4 - 0.5, height: pitches[2 * pitch + 1] ?? 0 });
    begin += frames;
  }
  const heights = new Float64Array(begin);
  let next = 0;
  for (let frame = 0; frame < begin; frame++) {
    while (next < points.length && (points[next]?.at ?? 0) <= frame) next++;
    const before = points[Math.max(0, next - 1)] ?? { at: 0, height: 0 };
    const after = points[Math.min(points.length - 1, next)] ?? before;
    const share = after.at > before.at ? Math.max(0, (frame - before.at) / (after.at - before.at)) : 0;
    heights[frame] = before.height + (after.height - before.height) * share;
  }
  return heights;
}
