"""Computes the features of the codec from the corpus, for each frame and each phone.

Usage: features.py CORPUS OUT.npz

CORPUS contains `NAME.s16` (16 kHz) and `NAME.jsonl` (one line for each sentence) for each speaker. OUT contains, for all sentences:
  sentences  [n, 3]      speaker, first phone, first frame; an additional row marks the end
  phones     [p, 10]     the fields of each phone, as phones.ts reads them
  durations  [p]         length in frames
  pitch      [p, 2]      log F0 at a quarter and three quarters of the phone, interpolated in voiceless sounds
  cepstra    [f, 25]     mel-cepstrum of the envelope (CheapTrick), natural log of amplitude
  aperiodic  [f]         dB at 3 kHz (D4C); 0 where voiceless
"""

import json
import sys

import numpy as np
import pyworld

RATE = 16000
HOP = 0.0125
ORDER = 24
WARP = 0.42
FFT = 1024
# The silence that is kept at both ends of a sentence, in frames.
MARGIN = 3
SPEAKERS = ["awb", "rms", "slt"]


def warped_bins(points=257):
    """Returns positions in the spectrum that are evenly spaced on the mel-like scale of an all-pass with WARP."""
    warped = np.linspace(0, np.pi, points)
    # The inverse of the all-pass is the all-pass with -WARP.
    linear = warped + 2 * np.arctan2(-WARP * np.sin(warped), 1 + WARP * np.cos(warped))
    return linear / np.pi * (FFT // 2)


BINS = warped_bins()
LOWER = np.minimum(BINS.astype(int), FFT // 2 - 1)
SHARE = (BINS - LOWER)[None]
POINTS = len(BINS)
WEIGHT = np.ones(POINTS)
WEIGHT[[0, -1]] = 0.5
BASIS = (np.cos(np.arange(ORDER + 1)[:, None] * np.linspace(0, np.pi, POINTS)[None]) * WEIGHT / (POINTS - 1)).T


def cepstra(envelope):
    spectrum = 0.5 * np.log(np.maximum(envelope, 1e-10))
    even = spectrum[:, LOWER] * (1 - SHARE) + spectrum[:, LOWER + 1] * SHARE
    return even @ BASIS  # log amplitude = c0 + 2 * sum of c_m cos(m * warped)


def boundaries(ends, start, last):
    """Returns the frames at which phones end. Each phone has at least one frame."""
    frames = np.round((np.minimum(np.array(ends), last) - start) / HOP).astype(int)
    for i in range(len(frames)):
        frames[i] = max(frames[i], (frames[i - 1] if i else 0) + 1)
    return frames


def analyse(samples, line):
    phones = np.array(line["phones"])
    ends = phones[:, -1] / 1000
    start = max(0.0, ends[0] - MARGIN * HOP)
    last = ends[-2] + MARGIN * HOP
    until = boundaries(ends, start, last)
    positions = start + (np.arange(until[-1]) + 0.5) * HOP
    f0, times = pyworld.dio(samples, RATE, f0_floor=60, f0_ceil=400, frame_period=5)
    f0 = pyworld.stonemask(samples, f0, times, RATE)
    voiced = f0 > 0
    if voiced.sum() < 4:
        return None
    smooth = np.interp(positions, times[voiced], np.log(f0[voiced]))
    at = np.minimum(np.searchsorted(times, positions + 0.0025) - 1, len(times) - 1)
    frame_f0 = np.where(f0[np.maximum(at, 0)] > 0, np.exp(smooth), 0.0)
    envelope = pyworld.cheaptrick(samples, frame_f0, positions, RATE, f0_floor=71, fft_size=FFT)
    noise = pyworld.code_aperiodicity(pyworld.d4c(samples, frame_f0, positions, RATE, fft_size=FFT), RATE)[:, 0]
    begins = np.concatenate([[0], until[:-1]])
    pitch = np.stack(
        [np.interp(begins + (until - begins) * share - 0.5, np.arange(until[-1]), smooth) for share in (0.25, 0.75)], 1
    )
    return phones[:, :10], until - begins, pitch, cepstra(envelope), np.where(frame_f0 > 0, noise, 0.0)


def main(folder, out):
    columns = [[], [], [], [], []]
    sentences = []
    phone = frame = 0
    for number, name in enumerate(SPEAKERS):
        audio = np.fromfile(f"{folder}/{name}.s16", "<i2")
        with open(f"{folder}/{name}.jsonl", encoding="utf-8") as lines:
            for text in lines:
                line = json.loads(text)
                samples = audio[line["offset"] : line["offset"] + line["samples"]] / 32768.0
                found = analyse(samples, line)
                if found is None:
                    continue
                sentences.append((number, phone, frame))
                phone += len(found[0])
                frame += len(found[3])
                for column, values in zip(columns, found):
                    column.append(values)
        print(name, len(sentences), "sentences", frame * HOP / 60, "minutes", flush=True)
    sentences.append((-1, phone, frame))
    names = ["phones", "durations", "pitch", "cepstra", "aperiodic"]
    kinds = [np.int16, np.int16, np.float32, np.float32, np.float32]
    arrays = {n: np.concatenate(c).astype(k) for n, c, k in zip(names, columns, kinds)}
    np.savez(out, sentences=np.array(sentences), **arrays)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
