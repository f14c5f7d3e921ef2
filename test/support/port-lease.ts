/**
 * Ports for programs that cannot listen on port 0 and report what the kernel chose, such as etcd and PostgreSQL, and
 * for addresses where nothing may listen.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** Below the ports that Linux assigns by itself (`ip_local_port_range` starts at 32768), so that nothing gets one by chance. */
const FIRST_PORT = 20_000;
const PORT_COUNT = 10_000;

/** Held until this process ends: closing one would let another process lease its port. */
const leases: Server[] = [];

/**
 * Leases a port of 127.0.0.1 to this process until it ends. The lease is an abstract Unix socket named after the port:
 * the kernel lets one process have it, and takes it back however that process ends. A program may therefore listen on
 * the port, stop, and listen on it again.
 */
export async function leasePort(): Promise<number> {
  for (let tried = 0; tried < PORT_COUNT; tried += 1) {
    const port = FIRST_PORT + ((process.pid * 101 + leases.length + tried) % PORT_COUNT);
    const lease = await listen(`\0svc-tts-port-${port}`);
    if (lease === undefined) continue;
    const probe = await listen({ host: "127.0.0.1", port });
    await probe?.[Symbol.asyncDispose]();
    if (probe === undefined) {
      // a program that takes no leases listens there
      await lease[Symbol.asyncDispose]();
      continue;
    }
    leases.push(lease.unref());
    return port;
  }
  throw new Error(`every port from ${FIRST_PORT} to ${FIRST_PORT + PORT_COUNT - 1} is leased or in use`);
}

export async function leasePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await leasePort());
  return ports;
}

/** Undefined when the address is in use. */
async function listen(address: string | { host: string; port: number }): Promise<Server | undefined> {
  const server = createServer();
  server.listen(address);
  try {
    await once(server, "listening");
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return undefined;
    throw error;
  }
}
