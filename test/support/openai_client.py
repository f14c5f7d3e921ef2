"""Requests speech with the Python client of OpenAI. Only the base URL and the key are changed. Prints the results as JSON."""
import json
import sys

from openai import BadRequestError, OpenAI

client = OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
ask = {"model": "gpt-4o-mini-tts", "voice": "coral", "input": "Good day to all of you, and welcome back to the show."}
whole = client.audio.speech.create(**ask, response_format="wav").content

pieces = []
with client.audio.speech.with_streaming_response.create(**ask, response_format="pcm", speed=1.5) as answer:
    for piece in answer.iter_bytes(4096):
        pieces.append(len(piece))

events = []
with client.audio.speech.with_streaming_response.create(**ask, stream_format="sse") as answer:
    for line in answer.iter_lines():
        if line.startswith("data: "):
            events.append(json.loads(line[6:])["type"])

try:
    client.audio.speech.create(**{**ask, "voice": "no-such-voice"})
    refused = None
except BadRequestError as error:
    refused = {"param": error.param, "code": error.code, "message": error.message}

models = [model.id for model in client.models.list()]
print(json.dumps({"wav": len(whole), "riff": whole[:4].decode(), "pcm": sum(pieces), "events": events, "refused": refused, "models": models}))
