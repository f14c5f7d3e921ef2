import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { parseSendQueues, parseUnsentBytes } from "../../../server/http/send-queues.ts";

/** Lines in the format of /proc/net/tcp and /proc/net/tcp6. */
const table = `
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 0200007F:C350 01 0000ABCD:00000001 01:00000014 00000000     0        0 12345 1 0000000000000000 20 4 30 10 -1
   1: 0000000000000000FFFF00000100007F:1F40 0000000000000000FFFF00000300007F:C351 01 00000007:00000000 00:00000000 00000000     0        0 2
   2: B80D01200000000000000000FECA0000:1F40 B80D0120000000000000000001000000:C352 01 00000009:00000000 00:00000000 00000000     0        0 3
   3: 000080FE000000000000000001000000:1F40 000080FE000000000000000001000000:C353 01 00000005:00000000 00:00000000 00000000     0        0 4
`;

const socket = (remoteAddress: string, remotePort: number) =>
  ({ localPort: 8000, remoteAddress, remotePort }) as Socket;

describe("the send queue of the kernel", () => {
  const queues = parseSendQueues(table);

  it.each([
    ["127.0.0.2", 50_000, 0xabcd],
    ["::ffff:127.0.0.3", 50_001, 7],
    ["127.0.0.3", 50_001, 7],
    ["2001:db8::1", 50_002, 9],
    ["fe80::1%eth0", 50_003, 5],
    ["127.0.0.2", 50_001, undefined],
    ["127.0.0.9", 50_000, undefined],
  ])("to %s port %i has %s bytes", (address, port, bytes) => {
    expect(queues(socket(address, port))).toBe(bytes);
  });

  it("is summed over all connections of a local port", () => {
    expect(parseUnsentBytes(table, 8000)).toBe(0xabcd + 7 + 9 + 5);
    expect(parseUnsentBytes(table, 8001)).toBe(0);
  });
});
