"""Word error rate of a speech recognizer over WAV files.

Usage: recognize.py FILE.tsv   (one line per sentence: path of a WAV file, tab, what it should say)

Prints one JSON object: the word error rate over all sentences, and for each what was heard. WAV files are
mono 16-bit at 16000 Hz, the rate that PocketSphinx' built-in English model knows.
"""

import json
import re
import sys
import wave

import jiwer
from pocketsphinx import Decoder


def plain(text):
    return re.sub(r"[^a-z' ]", "", text.lower()).strip()


def heard(decoder, path):
    with wave.open(path) as audio:
        if (audio.getframerate(), audio.getnchannels(), audio.getsampwidth()) != (16000, 1, 2):
            raise SystemExit(f"{path}: need mono 16-bit audio at 16000 Hz")
        samples = audio.readframes(audio.getnframes())
    decoder.start_utt()
    decoder.process_raw(samples, full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    # jiwer takes no empty sentence; "-" is a word that no reference has
    return (hypothesis.hypstr if hypothesis else "").lower().strip() or "-"


def main():
    with open(sys.argv[1], encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    decoder = Decoder(samprate=16000, loglevel="FATAL")
    said = [plain(sentence) for _, sentence in pairs]
    results = [heard(decoder, path) for path, _ in pairs]
    print(json.dumps({"wordErrorRate": jiwer.wer(said, results), "heard": results}))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__)
    main()
