/**
 * One API server, with our CRDs, for the tests of what runs in a cluster. A test reaches it by `inject("controlPlane")` of vitest and keeps to a
 * namespace of its own.
 */
import type { TestProject } from "vitest/node";
import { type ControlPlaneAddress, controlPlane } from "./control-plane.ts";
import { installCrds } from "./kubectl.ts";

declare module "vitest" {
  interface ProvidedContext {
    controlPlane: ControlPlaneAddress;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const plane = await controlPlane({ controllerManager: true, prepare: installCrds });
  project.provide("controlPlane", plane.address);
  return () => plane.stop();
}
