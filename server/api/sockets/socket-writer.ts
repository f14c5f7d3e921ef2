import type { WebSocket } from "ws";

/** The largest amount of audio that waits for the client. Beyond this limit, the engine waits. */
const mostWaitingBytes = 512 * 1024;
const mostWaitingSeconds = 2;
const bytesPerSample = 2;

/** Sends frames, and makes the caller wait while the client reads too slowly. */
export class SocketWriter {
  readonly #socket: WebSocket;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  /**
   * Sends a frame. The promise resolves when the client can receive more, or immediately if the socket is
   * closed.
   * @param rate the sampling rate of the audio in Hz.
   */
  async send(frame: string | Uint8Array, rate: number): Promise<void> {
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return;
    const { promise: isSent, resolve } = Promise.withResolvers<void>();
    socket.send(frame, () => resolve());
    const mostWaiting = Math.min(mostWaitingBytes, mostWaitingSeconds * bytesPerSample * rate);
    if (socket.bufferedAmount > mostWaiting) await isSent;
  }
}
