#!/bin/bash
# Trains arcana-mini from the beginning: synthesizes the corpus with Flite, trains the codec and the model, and writes the model
# to server/engine/arcana/model.
# Usage: all.sh [FOLDER]   for the corpus and intermediate files (3 GB); MINUTES, STEPS and SEED change the training
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$HOME/.cache/svc-tts/arcana-training}
minutes=${MINUTES:-80} # minutes for each of three voices
steps=${STEPS:-3600}
seed=${SEED:-1}
python=$folder/venv/bin/python
node=$here/../../node_modules/.bin/node

mkdir -p "$folder"
if ! [ -e "$folder/venv/installed" ]; then
  python3 -m venv "$folder/venv"
  "$python" -m pip install --quiet -r "$here/requirements.txt"
  touch "$folder/venv/installed"
fi
# With one thread, sums are reproducible, and threads do not wait for each other.
export OMP_NUM_THREADS=1
"$node" "$here/corpus.ts" "$folder/corpus" "$minutes" "$seed"
"$python" "$here/features.py" "$folder/corpus" "$folder/features.npz"
"$python" "$here/codec.py" "$folder/features.npz" "$folder/codec.npz" "$folder/codes.npz"
"$python" "$here/train.py" "$folder/codes.npz" "$folder/run" "$steps" "$seed"
"$python" "$here/export.py" "$folder/run/model.pt" "$folder/codec.npz" "$folder/corpus" "$seed" "$here/../../server/engine/arcana/model"
