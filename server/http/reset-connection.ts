import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/**
 * Closes a connection after the written bytes are sent, in a way that the client cannot mistake for the end of
 * a response. Plain TCP needs a reset. TLS does not, and Node.js sends none: the client detects the missing
 * `close_notify` alert (RFC 8446, section 6.1).
 */
export function resetAfterWrites(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Resets a connection immediately. Bytes that were not sent yet are dropped. */
export function resetConnection(socket: Socket): void {
  resetAfterWrites(socket);
  socket.destroy();
}
