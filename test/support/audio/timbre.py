"""Measures acoustic properties of voices: the pitch, and the shape of the spectrum.

Usage: timbre.py LIST   (LIST has the path of a WAV file on each line)

Prints a JSON list with an entry for each file: the median pitch of voiced frames in Hz, the medians of the first four formants in Hz, and
the means of the mel-frequency cepstral coefficients 1 to 12 over loud frames. The WAV files must be mono 16-bit at 16000 Hz.
"""

import json
import sys
import wave

import numpy as np

RATE = 16000
FRAME = 512
HOP = 160
LOWEST_PITCH = 50
HIGHEST_PITCH = 500


def read(path):
    with wave.open(path) as audio:
        if (audio.getframerate(), audio.getnchannels(), audio.getsampwidth()) != (RATE, 1, 2):
            raise SystemExit(f"{path}: the audio must be mono, 16-bit, at {RATE} Hz")
        return np.frombuffer(audio.readframes(audio.getnframes()), "<i2").astype(float)


def frames(samples, length=FRAME):
    starts = range(0, len(samples) - length, HOP)
    every = np.stack([samples[start : start + length] for start in starts])
    loudness = 10 * np.log10(np.mean(every**2, axis=1) + 1)
    return every[loudness > loudness.max() - 25]


def voiced(samples):
    """Returns the pitch by normalized autocorrelation, and the voiced frames."""
    every = frames(samples, 1024)
    every = every - every.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(every * np.hanning(1024), 2048)) ** 2
    similar = np.fft.irfft(spectrum)[:, :512]
    window = np.fft.irfft(np.abs(np.fft.rfft(np.hanning(1024), 2048)) ** 2)[:512]
    similar = similar / similar[:, :1] / (window / window[0])
    shortest, longest = RATE // HIGHEST_PITCH, RATE // LOWEST_PITCH
    inside = similar[:, shortest:longest]
    strongest = inside.max(axis=1)
    # This selects the shortest period that is nearly as strong as the strongest, because multiples of a period are as strong as the period.
    periods = shortest + np.argmax(inside > 0.9 * strongest[:, None], axis=1)
    periods = np.array([climb(row, at) for row, at in zip(similar, periods)])
    clear = strongest > 0.6
    return RATE / periods[clear], every[clear]


def climb(row, at):
    while at + 1 < len(row) and row[at + 1] > row[at]:
        at += 1
    return at


def formants(every):
    """Returns the medians of the four lowest resonances of linear prediction (order 18)."""
    found = []
    for frame in every[::3]:
        signal = np.append(frame[0], frame[1:] - 0.97 * frame[:-1]) * np.hamming(len(frame))
        lags = np.correlate(signal, signal, "full")[len(signal) - 1 :][:19]
        matrix = lags[np.abs(np.arange(18)[:, None] - np.arange(18))]
        poles = np.roots(np.append(1, -np.linalg.solve(matrix + np.eye(18) * lags[0] * 1e-9, lags[1:])))
        poles = poles[poles.imag > 0]
        bandwidths = -np.log(np.abs(poles)) * RATE / np.pi
        heights = np.sort(np.angle(poles[bandwidths < 500]) * RATE / (2 * np.pi))
        heights = heights[heights > 150]
        if len(heights) >= 4:
            found.append(heights[:4])
    return np.median(found, axis=0)


def mel_bank(bands=26):
    def mel(hertz):
        return 2595 * np.log10(1 + hertz / 700)

    edges = 700 * (10 ** (np.linspace(mel(80), mel(7000), bands + 2) / 2595) - 1)
    heights = np.fft.rfftfreq(FRAME, 1 / RATE)
    rise = (heights[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - heights[None]) / (edges[2:] - edges[1:-1])[:, None]
    return np.clip(np.minimum(rise, fall), 0, None)


def cepstrum(samples):
    power = np.abs(np.fft.rfft(frames(samples) * np.hamming(FRAME))) ** 2
    bands = np.log(power @ mel_bank().T + 1)
    count = bands.shape[1]
    basis = np.cos(np.pi * np.arange(1, 13)[:, None] * (np.arange(count) + 0.5) / count) * np.sqrt(2 / count)
    return (bands @ basis.T).mean(axis=0)


def describe(path):
    samples = read(path)
    pitches, every = voiced(samples)
    return {
        "pitchHz": float(np.median(pitches)),
        "formantsHz": [round(float(f)) for f in formants(every)],
        "cepstrum": [round(float(c), 3) for c in cepstrum(samples)],
    }


def main():
    with open(sys.argv[1], encoding="utf-8") as lines:
        print(json.dumps([describe(line.strip()) for line in lines if line.strip()]))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__)
    main()
