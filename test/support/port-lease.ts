/**
 * Leases ports for programs that cannot listen on port 0 and report the port, such as etcd and PostgreSQL,
 * and for addresses on which nothing may listen.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/**
 * Below the ports that Linux assigns itself (`ip_local_port_range` starts at 32768), so that no other socket
 * gets one by chance.
 */
const FIRST_PORT = 20_000;
const PORT_COUNT = 10_000;

/** Held until this process ends. A closed socket would let another process lease its port. */
const leases: Server[] = [];

/**
 * Leases a port of 127.0.0.1 to this process until it ends. The lease is an abstract Unix socket named after the port:
 * the kernel lets one process have it, and takes it back however that process ends. A program may therefore listen on
 * the port, stop, and listen on it again.
 */
export async function leasePort(): Promise<number> {
  for (let tried = 0; tried < PORT_COUNT; tried += 1) {
    const port = FIRST_PORT + ((process.pid * 101 + leases.length + tried) % PORT_COUNT);
    if (await lease(port)) return port;
  }
  throw new Error(`every port from ${FIRST_PORT} to ${FIRST_PORT + PORT_COUNT - 1} is leased or in use`);
}

export async function leasePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await leasePort());
  return ports;
}

/** Leases all of these ports, shifted by the same number, and returns that number. */
export async function leasePortOffset(ports: readonly number[]): Promise<number> {
  const lowest = Math.min(...ports);
  const span = Math.max(...ports) - lowest + 1;
  for (let tried = 0; tried < PORT_COUNT; tried += span) {
    const first = FIRST_PORT + ((process.pid * 101 + tried) % (PORT_COUNT - span));
    const offset = first - lowest;
    const leased = await Promise.all(ports.map((port) => lease(port + offset)));
    if (leased.every(Boolean)) return offset;
  }
  throw new Error(`no offset leaves all of ${ports.join(", ")} free`);
}

/** Returns false if another process has the lease, or if a program without a lease listens on the port. */
async function lease(port: number): Promise<boolean> {
  const held = await listen(`\0svc-tts-port-${port}`);
  if (held === undefined) return false;
  const probe = await listen({ host: "127.0.0.1", port });
  await probe?.[Symbol.asyncDispose]();
  if (probe === undefined) await held[Symbol.asyncDispose]();
  else leases.push(held.unref());
  return probe !== undefined;
}

/** Returns undefined if the address is in use. */
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
