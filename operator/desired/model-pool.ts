import { api, children, labels } from "../../config/contract/names.ts";
import type { ModelSpec } from "../../crds/tts-deployment.ts";
import type { TtsModelPoolSpec } from "../../crds/tts-model-pool.ts";
import type { TtsDeployment } from "../observed.ts";
import { type Child, childMetadata } from "./metadata.ts";

/** `replicas` is named only where the spec does: otherwise whoever scales the pool owns the field. */
export function modelPool(
  owner: TtsDeployment,
  { name, replicas, ...model }: ModelSpec,
): Child<{ spec: Omit<TtsModelPoolSpec, "replicas"> & { replicas?: number } }> {
  const { imagePullSecrets } = owner.spec;
  return {
    apiVersion: api.apiVersion,
    kind: "TtsModelPool",
    metadata: childMetadata(owner, children.pool(owner.metadata.name, name), "model", {
      labels: { [labels.pool]: name },
    }),
    spec: {
      deployment: owner.metadata.name,
      pool: name,
      ...model,
      ...(imagePullSecrets && { imagePullSecrets }),
      ...(replicas !== undefined && { replicas }),
    },
  };
}
