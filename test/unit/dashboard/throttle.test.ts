import { describe, expect, it } from "vitest";
import { createThrottle, networkOf } from "../../../server/dashboard/sign-in/throttle.ts";

const limited = { code: "rate_limited", retryAfterSeconds: expect.any(Number) };

describe("the limits of sign-in attempts", () => {
  it("block a name for one network after ten attempts from it", async () => {
    const throttle = createThrottle();
    for (let i = 0; i < 10; i++) await throttle.enter("login", "ada", `2001:db8::${i}`);
    await expect(throttle.enter("login", "ada", "2001:db8::ffff:1")).rejects.toMatchObject(limited);
    await throttle.enter("login", "ada", "2001:db8:0:1::1");
    await throttle.enter("login", "ada", "192.0.2.1");
    await throttle.enter("account", "ada", "2001:db8::1");
  });

  it("block a name after a hundred attempts from all networks", async () => {
    const throttle = createThrottle();
    for (let i = 0; i < 100; i++) await throttle.enter("login", "ada", `192.0.2.${i}`);
    await expect(throttle.enter("login", "ada", "198.51.100.1")).rejects.toMatchObject(limited);
  });

  it("block one path for a network after 200 attempts, and no other path", async () => {
    const throttle = createThrottle();
    for (let i = 0; i < 200; i++) await throttle.enter("setup", `name ${i}`, "192.0.2.1");
    await expect(throttle.enter("setup", "another", "192.0.2.1")).rejects.toMatchObject(limited);
    await throttle.enter("login", "ada", "192.0.2.1");
  });

  it("do not count attempts with the correct password", async () => {
    const throttle = createThrottle();
    for (let i = 0; i < 300; i++) {
      await throttle.enter("login", "ada", "192.0.2.1");
      await throttle.passed("login", "ada", "192.0.2.1");
    }
  });
});

it.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0DB8:0001:2::", "2001:db8:1:2::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["64:ff9b::192.0.2.7", "64:ff9b:0:0::/64"],
  ["not an address", "not an address"],
])("networkOf(%j) is %j", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
