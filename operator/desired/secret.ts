import { acceptedTokensKey, children, tokenKey } from "../../config/contract/names.ts";
import type { Manifest } from "../manifest.ts";
import type { TtsDeployment } from "../observed.ts";
import { childMetadata } from "./metadata.ts";

/** What clients send between the tiers, and the tokens that model pods take (one a line). */
export interface InternalToken {
  readonly token: string;
  readonly accepted: string;
}

export function tokenSecret(owner: TtsDeployment, { token, accepted }: InternalToken): Manifest {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: childMetadata(owner, children.token(owner.metadata.name), "token"),
    type: "Opaque",
    data: { [tokenKey]: base64(token), [acceptedTokensKey]: base64(accepted) },
  };
}

/** `undefined` when the Secret lacks an entry, or its own token is not among those accepted. */
export function readTokenSecret(secret: Manifest): InternalToken | undefined {
  const data = (secret.data ?? {}) as Record<string, string>;
  const token = text(data[tokenKey]);
  const accepted = text(data[acceptedTokensKey]);
  if (token === "" || !accepted.split("\n").includes(token)) return undefined;
  return { token, accepted };
}

function base64(plain: string): string {
  return Buffer.from(plain, "utf8").toString("base64");
}

function text(encoded: string | undefined): string {
  return Buffer.from(encoded ?? "", "base64").toString("utf8");
}
