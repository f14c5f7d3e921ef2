import type { WebSocket } from "ws";

/** The largest amount of audio that waits for the client. Beyond this limit, the engine waits. */
const mostWaitingBytes = 512 * 1024;
const mostWaitingSeconds = 2;
const bytesPerSample = 2;

/**
 * Sends a frame, and makes the caller wait while the client reads too slowly. The promise resolves when the
 * client can receive more, or immediately if the socket is closed.
 * @param rate the sampling rate of the audio in Hz.
 */
export async function sendFrame(socket: WebSocket, frame: string | Uint8Array, rate: number): Promise<void> {
  if (socket.readyState !== socket.OPEN) return;
  const { promise: isSent, resolve } = Promise.withResolvers<void>();
  socket.send(frame, () => resolve());
  const mostWaiting = Math.min(mostWaitingBytes, mostWaitingSeconds * bytesPerSample * rate);
  if (socket.bufferedAmount > mostWaiting) await isSent;
}
