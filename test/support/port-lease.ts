/**
 * Leases ports for programs that cannot listen on port 0 and report their port, such as etcd and PostgreSQL.
 * Tests also lease ports on which no program may listen.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/**
 * Linux assigns ports from 32768 on (`ip_local_port_range`). Leased ports are below, so that no other socket
 * gets them.
 */
const FIRST_PORT = 20_000;
const PORT_COUNT = 10_000;

/**
 * The sockets of the leases. They stay open until this process ends, because a closed socket would free its
 * port.
 */
const leases: Server[] = [];

/**
 * Leases a port of 127.0.0.1 to this process until the process ends. The lease is an abstract Unix socket
 * with the port in its name. The kernel allows one such socket, and removes it with the process. A program
 * may listen on the port, stop, and listen again.
 */
export async function leasePort(): Promise<number> {
  for (let attempt = 0; attempt < PORT_COUNT; attempt += 1) {
    const port = FIRST_PORT + ((process.pid * 101 + leases.length + attempt) % PORT_COUNT);
    if (await lease(port)) return port;
  }
  throw new Error(`every port from ${FIRST_PORT} to ${FIRST_PORT + PORT_COUNT - 1} is leased or in use`);
}

export async function leasePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await leasePort());
  return ports;
}

/** Finds an offset at which all of these ports are free, leases the ports, and returns the offset. */
export async function leasePortOffset(ports: readonly number[]): Promise<number> {
  const lowest = Math.min(...ports);
  const span = Math.max(...ports) - lowest + 1;
  for (let attempt = 0; attempt < PORT_COUNT; attempt += span) {
    const first = FIRST_PORT + ((process.pid * 101 + attempt) % (PORT_COUNT - span));
    const offset = first - lowest;
    const leased = await Promise.all(ports.map((port) => lease(port + offset)));
    if (leased.every(Boolean)) return offset;
  }
  throw new Error(`no offset leaves all of ${ports.join(", ")} free`);
}

/**
 * Leases a port. Returns false if another process has the lease, or if a program without a lease uses the
 * port.
 */
async function lease(port: number): Promise<boolean> {
  const leaseSocket = await listen(`\0svc-tts-port-${port}`);
  if (leaseSocket === undefined) return false;
  const probe = await listen({ host: "127.0.0.1", port });
  await probe?.[Symbol.asyncDispose]();
  if (probe === undefined) await leaseSocket[Symbol.asyncDispose]();
  else leases.push(leaseSocket.unref());
  return probe !== undefined;
}

/** Listens on an address. Returns undefined if the address is in use. */
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
