"""Recognizes the speech in WAV files.

Usage: recognize.py words FILE.tsv     prints the recognized words, the number of wrong words, and the number of expected words
       recognize.py align FILE.tsv     prints the start and the end of each word of the sentence in seconds
       recognize.py choose FILE.tsv    prints whether the recognizer selects the right sentence from all sentences in the file

FILE.tsv has a line for each recording: the path of a WAV file, a tab, and the sentence. The output is one JSON value. The WAV files must
be mono 16-bit at 16000 Hz, which is the rate of the built-in English model of PocketSphinx.
"""

import json
import re
import sys
import wave

import jiwer
from pocketsphinx import Decoder


def plain(text):
    return re.sub(r"[^a-z' ]", "", text.lower()).strip()


def samples(path):
    with wave.open(path) as audio:
        if (audio.getframerate(), audio.getnchannels(), audio.getsampwidth()) != (16000, 1, 2):
            raise SystemExit(f"{path}: the audio must be mono, 16-bit, at 16000 Hz")
        return audio.readframes(audio.getnframes())


def listen(decoder, path):
    decoder.start_utt()
    decoder.process_raw(samples(path), full_utt=True)
    decoder.end_utt()


def heard(decoder, path):
    listen(decoder, path)
    hypothesis = decoder.hyp()
    # jiwer does not accept an empty sentence. No expected sentence contains the word "-".
    return (hypothesis.hypstr if hypothesis else "").lower().strip() or "-"


def words(pairs):
    decoder = Decoder(samprate=16000, loglevel="FATAL")
    expected = [plain(sentence) for _, sentence in pairs]
    results = [heard(decoder, path) for path, _ in pairs]
    return [{"heard": result, **errors(sentence, result)} for sentence, result in zip(expected, results, strict=True)]


def errors(sentence, result):
    found = jiwer.process_words(sentence, result)
    wrong = found.substitutions + found.deletions + found.insertions
    return {"wrong": wrong, "words": found.hits + found.substitutions + found.deletions}


def align(pairs):
    decoder = Decoder(samprate=16000, loglevel="FATAL", lm=None)
    return [aligned(decoder, path, plain(sentence)) for path, sentence in pairs]


def aligned(decoder, path, sentence):
    decoder.set_align_text(sentence)
    listen(decoder, path)
    spoken = [part for part in decoder.seg() if not part.word.startswith(("<", "["))]
    # "the(2)" is another pronunciation of "the".
    return [[re.sub(r"\(\d+\)$", "", p.word), p.start_frame / 100, (p.end_frame + 1) / 100] for p in spoken]


def choose(pairs):
    sentences = sorted({plain(sentence) for _, sentence in pairs})
    decoder = Decoder(samprate=16000, loglevel="FATAL", lm=None)
    decoder.add_jsgf_string("sentences", f"#JSGF V1.0; grammar s; public <s> = {' | '.join(sentences)} ;")
    decoder.activate_search("sentences")
    return [heard(decoder, path) == plain(sentence) for path, sentence in pairs]


def main():
    with open(sys.argv[2], encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    print(json.dumps(modes[sys.argv[1]](pairs)))


modes = {"words": words, "align": align, "choose": choose}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in modes:
        raise SystemExit(__doc__)
    main()
