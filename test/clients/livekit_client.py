"""Runs LiveKit's plugin unchanged, with another address and key.

Reads one JSON order per line, and prints one JSON result per line.
"""
import asyncio
import json
import os
import sys

from livekit.agents import APIConnectOptions, utils
from livekit.plugins import rime

SECONDS_PER_TURN = 60


async def feed(stream, pieces):
    """Sends the pieces: a string is text of the language model, a number is a pause in seconds."""
    for piece in pieces:
        if isinstance(piece, str):
            stream.push_text(piece)
        else:
            await asyncio.sleep(piece)
    stream.end_input()


async def speak(tts, order):
    """Plays one turn. With `interrupt`, the user interrupts the turn at the first audio."""
    stream = tts.stream(conn_options=APIConnectOptions(max_retry=0))
    feeding = asyncio.create_task(feed(stream, order["pieces"]))
    samples, words, rate = 0, [], 0
    async for event in stream:
        rate = event.frame.sample_rate
        samples += event.frame.samples_per_channel
        for timed in event.frame.userdata.get("lk.timed_transcripts", []):
            words.append([str(timed).strip(), timed.start_time, timed.end_time])
        if order.get("interrupt"):
            break
    if order.get("interrupt"):
        feeding.cancel()
    else:
        await feeding
    await stream.aclose()
    return {"samples": samples, "rate": rate, "words": words}


def create(order):
    """Creates the service from an example of the documentation, or from the options of the order."""
    if "example" not in order:
        return rime.TTS(**order["options"])
    os.environ.update(order["environment"])
    scope = {}
    exec(order["example"], scope)
    return scope["tts"]


async def main():
    services = {}
    async with utils.http_context.open():
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            order = json.loads(line)
            name = json.dumps([order.get("options"), order.get("example")])
            try:
                if name not in services:
                    services[name] = create(order)
                answer = await asyncio.wait_for(speak(services[name], order), SECONDS_PER_TURN)
            except Exception as error:
                answer = {"error": repr(error)}
            print(json.dumps(answer), flush=True)


asyncio.run(main())
