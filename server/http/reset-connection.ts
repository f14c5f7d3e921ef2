import type { Socket } from "node:net";

/** The TCP connection of each TLS connection. */
const transports = new WeakMap<Socket, Socket>();

/**
 * Records the TCP connection of a TLS connection, so that both can be reset. Node.js only resets TCP
 * connections.
 */
export function setTransport(secure: Socket, transport: Socket): void {
  transports.set(secure, transport);
}

/**
 * Closes a connection after the written bytes are sent, in a way that the client cannot mistake for the end
 * of a response. TLS needs a reset too: a client could detect the end by a missing `close_notify` alert (RFC
 * 8446, section 6.1), but many clients, such as Node.js, ignore a missing alert.
 */
export function resetAfterWrites(socket: Socket): void {
  (transports.get(socket) ?? socket).resetAndDestroy();
}

/** Resets a connection immediately. Bytes that were not sent yet are dropped. */
export function resetConnection(socket: Socket): void {
  resetAfterWrites(socket);
  socket.destroy();
}
