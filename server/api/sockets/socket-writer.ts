import type { WebSocket } from "ws";

/** Audio that may wait for the client before the engine has to wait too. */
const mostWaitingBytes = 512 * 1024;
const mostWaitingSeconds = 2;
const bytesPerSample = 2;

/** Sends frames, and makes the sender wait while the client takes too few of them. */
export class SocketWriter {
  readonly #socket: WebSocket;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  /**
   * @param rate Hz of the audio that is sent.
   * @returns once there is room for more; at once where the socket is closed.
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
