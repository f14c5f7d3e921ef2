import type { WebSocket } from "ws";

/** Limit of audio that waits for the client. Beyond it, the engine waits too. */
const mostWaitingBytes = 512 * 1024;
const mostWaitingSeconds = 2;
const bytesPerSample = 2;

/** Sends frames, and makes the sender wait while the client does not read them. */
export class SocketWriter {
  readonly #socket: WebSocket;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  /**
   * @param rate of the audio, in Hz.
   * @returns when the client can receive more, or at once if the socket is closed.
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
