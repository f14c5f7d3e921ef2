import { acceptedTokensKey, api, children, tokenKey } from "../../config/contract/names.ts";
import { childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

/** The token that API pods send, and the tokens that model pods accept. */
export interface InternalToken {
  readonly token: string;
  /** In the order in which they were made; `token` is among them. */
  readonly accepted: readonly string[];
  /** When either last changed, milliseconds since the epoch; `undefined` in a Secret of an earlier operator. */
  readonly changedAt: number | undefined;
  /** The last request for a new token that was served. */
  readonly askedBy: string | undefined;
}

const annotations = {
  changedAt: `${api.group}/token-changed-at`,
  askedBy: `${api.group}/token-asked-by`,
} as const;

export function tokenSecret(owner: TtsDeployment, internal: InternalToken): KubernetesObject {
  const { token, accepted, changedAt, askedBy } = internal;
  const notes = {
    ...(changedAt !== undefined && { [annotations.changedAt]: new Date(changedAt).toISOString() }),
    ...(askedBy !== undefined && { [annotations.askedBy]: askedBy }),
  };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: childMetadata(owner, children.token(owner.metadata.name), "token", { annotations: notes }),
    type: "Opaque",
    data: { [tokenKey]: base64(token), [acceptedTokensKey]: base64(accepted.join("\n")) },
  };
}

/** `undefined` when the Secret lacks an entry, or its own token is not among those accepted. */
export function readTokenSecret({ metadata, ...secret }: KubernetesObject): InternalToken | undefined {
  const data = (secret.data ?? {}) as Record<string, string>;
  const token = text(data[tokenKey]);
  const accepted = text(data[acceptedTokensKey]).split("\n");
  if (token === "" || !accepted.includes(token)) return undefined;
  const changedAt = Date.parse(metadata.annotations?.[annotations.changedAt] ?? "");
  return {
    token,
    accepted,
    changedAt: Number.isNaN(changedAt) ? undefined : changedAt,
    askedBy: metadata.annotations?.[annotations.askedBy],
  };
}

function base64(plain: string): string {
  return Buffer.from(plain, "utf8").toString("base64");
}

function text(encoded: string | undefined): string {
  return Buffer.from(encoded ?? "", "base64").toString("utf8");
}
