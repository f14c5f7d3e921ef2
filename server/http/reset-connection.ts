import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/**
 * Closes a connection after the written bytes are sent, so that its client does not take the end for the end
 * of a response. Over TLS no reset is needed, and Node.js sends none: the client misses the closing message
 * of TLS (RFC 8446, section 6.1).
 */
export function resetAfterWrites(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** The same at once: the written bytes are dropped. */
export function resetConnection(socket: Socket): void {
  resetAfterWrites(socket);
  socket.destroy();
}
