"""Learns the codec from features: a product vector quantizer of the mel-cepstrum, and quantizers of noise and pitch.

Usage: codec.py FEATURES.npz CODEC.npz CODES.npz

The cepstrum without the speaker's mean is divided into groups of coefficients. Each group has its own codebook, so that every
combination of codes that a model samples is a plausible envelope.
"""

import sys

import numpy as np

GROUPS = [(0, 2), (2, 5), (5, 11), (11, 25)]
CODES = 256
NOISES = 16
PITCHES = 128
LONGEST = 48
SAMPLE = 40000
ROUNDS = 12


def nearest(points, centres):
    found = np.empty(len(points), np.int64)
    norms = (centres**2).sum(1)
    for at in range(0, len(points), 8192):
        found[at : at + 8192] = (norms - 2 * points[at : at + 8192] @ centres.T).argmin(1)
    return found


def kmeans(points, count, random):
    points = points[random.permutation(len(points))[:SAMPLE]].astype(np.float32)
    centres = points[:count].copy()
    for _ in range(ROUNDS):
        found = nearest(points, centres)
        sizes = np.bincount(found, minlength=count)
        for column in range(points.shape[1]):
            sums = np.bincount(found, points[:, column], minlength=count)
            centres[:, column] = np.where(sizes > 0, sums / np.maximum(sizes, 1), centres[:, column])
        empty = np.flatnonzero(sizes == 0)
        centres[empty] = points[random.integers(len(points), size=len(empty))]
    return centres


def speaker_of_frames(sentences):
    lengths = np.diff(sentences[:, 2])
    return np.repeat(sentences[:-1, 0], lengths)


def main(features, codec_path, codes_path):
    data = np.load(features)
    random = np.random.default_rng(1)
    sentences = data["sentences"]
    speakers = speaker_of_frames(sentences)
    speakers_of_phones = np.repeat(sentences[:-1, 0], np.diff(sentences[:, 1]))
    count = sentences[:-1, 0].max() + 1
    cepstra, pitch, noise = data["cepstra"], data["pitch"], data["aperiodic"]
    means = np.stack([cepstra[speakers == s].mean(0) for s in range(count)])
    # The mean pitch of each speaker: approximately the mean of log F0, without silence.
    heard = data["phones"][:, 0] > 0
    heights = np.array([pitch[(speakers_of_phones == s) & heard].mean() for s in range(count)])
    centred = cepstra - means[speakers]
    books, codes = {}, []
    error = np.zeros(len(centred))
    for number, (begin, end) in enumerate(GROUPS):
        book = kmeans(centred[:, begin:end], CODES, random)
        books[f"book{number}"] = book
        codes.append(nearest(centred[:, begin:end], book))
        error += ((centred[:, begin:end] - book[codes[-1]]) ** 2 * np.where(np.arange(begin, end) == 0, 1, 2)).sum(1)
    print("spectral distance, dB:", (20 / np.log(10) * np.sqrt(error)).mean())
    tones = noise < 0
    edges = np.quantile(noise[tones], np.linspace(0, 1, NOISES)[1:-1])
    noise_codes = np.where(tones, 1 + np.searchsorted(edges, noise), 0)
    levels = np.array([0.0] + [min(-0.01, noise[noise_codes == c].mean()) for c in range(1, NOISES)])
    shapes = pitch - heights[speakers_of_phones][:, None]
    book = kmeans(shapes[heard], PITCHES, random)
    pitch_codes = nearest(shapes, book)
    print("pitch error, cents:", 1200 / np.log(2) * np.abs(shapes - book[pitch_codes])[heard].mean())
    np.savez(codec_path, means=means, heights=heights, levels=levels, pitches=book, **books)
    np.savez(
        codes_path,
        sentences=sentences,
        phones=data["phones"],
        durations=np.minimum(data["durations"], LONGEST) - 1,
        lengths=data["durations"],
        pitches=pitch_codes,
        frames=np.stack([*codes, noise_codes], 1).astype(np.int16),
    )


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
