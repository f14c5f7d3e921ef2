"""Runs Pipecat's services unchanged, with another address and key.

Reads one JSON order per line, and prints one JSON result per line.
"""
import asyncio
import json
import os
import sys

from loguru import logger
from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    ErrorFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.rime.tts import RimeNonJsonTTSService, RimeTTSService
from pipecat.services.rime.tts_v1 import RimeV1TTSService
from pipecat.services.tts_service import TextAggregationMode
from pipecat.workers.runner import WorkerRunner

SECONDS_PER_TURN = 60

logger.remove()
logger.add(sys.stderr, level="DEBUG")


class Listener(FrameProcessor):
    """Replaces the audio output of the bot, and collects the frames that the bot would play."""

    def __init__(self):
        super().__init__()
        self.frames = asyncio.Queue()

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, (TTSAudioRawFrame, TTSTextFrame, TTSStoppedFrame, InterruptionFrame)):
            self.frames.put_nowait(frame)
        await self.push_frame(frame, direction)


class Bot:
    def __init__(self, order):
        self.listener = Listener()
        params = PipelineParams(audio_out_sample_rate=order["rate"])
        self.worker = PipelineWorker(
            Pipeline([service_of(order), self.listener]), cancel_on_idle_timeout=False, params=params
        )
        self.started = asyncio.Event()

        @self.worker.event_handler("on_pipeline_started")
        async def on_started(_worker, _frame):
            self.started.set()

        @self.worker.event_handler("on_pipeline_error")
        async def on_error(_worker, frame):
            self.listener.frames.put_nowait(frame)

    async def run(self):
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(self.worker)
        self.running = asyncio.create_task(runner.run())
        await asyncio.wait_for(self.started.wait(), SECONDS_PER_TURN)

    async def turn(self, order):
        """Plays one turn. With `interrupt`, the user interrupts the turn at the first audio."""
        feeding = asyncio.create_task(self.feed(order["pieces"]))
        samples, words, contexts = 0, [], set()
        while True:
            frame = await asyncio.wait_for(self.listener.frames.get(), SECONDS_PER_TURN)
            if isinstance(frame, ErrorFrame):
                raise RuntimeError(frame.error)
            if isinstance(frame, (TTSStoppedFrame, InterruptionFrame)):
                break
            if isinstance(frame, TTSTextFrame):
                words.append(frame.text)
                continue
            contexts.add(frame.context_id)
            assert len(frame.audio) % 2 == 0, "an audio frame ends within a sample"
            if samples == 0:
                await self.worker.queue_frame(BotStartedSpeakingFrame(), FrameDirection.UPSTREAM)
                if order.get("interrupt"):
                    await self.worker.queue_frame(InterruptionFrame())
            samples += len(frame.audio) // 2
        await feeding
        await self.worker.queue_frame(BotStoppedSpeakingFrame(), FrameDirection.UPSTREAM)
        return {"samples": samples, "words": words, "contexts": len(contexts)}

    async def feed(self, pieces):
        """Sends the pieces: a string is text of the language model, a number is a pause in seconds."""
        await self.worker.queue_frame(LLMFullResponseStartFrame())
        for piece in pieces:
            if isinstance(piece, str):
                await self.worker.queue_frame(LLMTextFrame(piece))
            else:
                await asyncio.sleep(piece)
        await self.worker.queue_frame(LLMFullResponseEndFrame())


def service_of(order):
    """Creates the service from an example of the documentation, or from the settings of the order."""
    if "example" in order:
        os.environ.update(order["environment"])
        scope = {}
        exec(order["example"], scope)
        return scope["tts"]
    kind, url, key, settings = order["service"], order["url"], order["key"], order["settings"]
    if kind == "json":
        return RimeTTSService(api_key=key, url=url, settings=RimeTTSService.Settings(**settings))
    if kind == "text":
        return RimeNonJsonTTSService(
            api_key=key, url=url, settings=RimeNonJsonTTSService.Settings(**settings)
        )
    return RimeV1TTSService(
        api_key=key,
        websocket_url=url,
        websocket_protocol=order["encoding"],
        text_aggregation_mode=TextAggregationMode(order["aggregation"]),
        settings=RimeV1TTSService.Settings(**settings),
    )


async def main():
    bots = {}
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        name = json.dumps({**order, "pieces": None, "interrupt": None}, sort_keys=True)
        try:
            if name not in bots:
                bots[name] = Bot(order)
                await bots[name].run()
            answer = await bots[name].turn(order)
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


asyncio.run(main())
