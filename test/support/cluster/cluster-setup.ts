/**
 * Starts one API server with the project's CRDs for all tests of the project `cluster`. A test reads its
 * address by `inject("controlPlane")` of vitest, and works in a namespace of its own.
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
