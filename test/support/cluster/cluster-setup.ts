/**
 * Starts one API server with the CRDs of svc-tts for all tests of the Vitest project `cluster`. A test reads
 * the address with `inject("controlPlane")`, and works in its own namespace.
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
