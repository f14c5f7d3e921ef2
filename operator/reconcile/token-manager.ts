import { children, requests } from "../../config/contract/names.ts";
import type { Clock } from "../../lib/clock.ts";
import type { SecretReading, Secrets } from "../cluster/secrets.ts";
import {
  firstToken,
  type InternalToken,
  readTokenSecret,
  rotate,
  type TokenRotation,
} from "../desired/token-secret.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type { TtsDeployment } from "../facts/observed.ts";
import { isOwnedBy } from "../facts/ownership.ts";
import { tokenRef } from "./observe.ts";

export interface TokenManagerOptions {
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly newToken: () => string;
  /** The longest time that a kubelet needs to update the mounted Secret in its pods. */
  readonly overlapMs: number;
}

const dayMs = 86_400_000;

/**
 * Returns the `namespace/name` of the TtsDeployment to which the Secret of a token belongs, or undefined for
 * other Secrets.
 */
export function deploymentOfToken(key: string): string | undefined {
  const suffix = children.token("");
  return key.endsWith(suffix) ? key.slice(0, -suffix.length) : undefined;
}

/**
 * Keeps the internal token of each TtsDeployment, and rotates it in steps. If the Secret is deleted, it is
 * recreated with the same token. Pods would read a new token at different times, and would reject each
 * other's requests in the meantime.
 */
export class TokenManager {
  readonly #options: TokenManagerOptions;
  /** The tokens, by namespace and name of the TtsDeployment. */
  readonly #known = new Map<string, { uid: string; internal: InternalToken }>();

  constructor(options: TokenManagerOptions) {
    this.#options = options;
  }

  /** Returns the token. If the Secret had to be read, `read` contains it. */
  async tokenOf(owner: TtsDeployment): Promise<TokenRotation & Pick<SecretReading<unknown>, "read">> {
    const { namespace, name, uid, annotations } = owner.metadata;
    const { secrets, clock, newToken, overlapMs } = this.#options;
    const key = `${namespace}/${name}`;
    const terms = {
      now: clock.nowMs(),
      asked: annotations?.[requests.rotateToken],
      everyMs: owner.spec.internalToken.rotateEveryDays * dayMs,
      overlapMs,
      newToken,
    };
    const ofOwner = (secret: KubernetesObject | undefined) =>
      secret && isOwnedBy(secret, owner) ? readTokenSecret(secret) : undefined;
    const { fact: stored, read } = await secrets.read(tokenRef(owner.metadata), `token ${uid}`, ofOwner);
    const known = this.#known.get(key);
    const token = stored ?? (known?.uid === uid ? known.internal : firstToken(terms));
    const rotation = rotate(token, terms);
    this.#known.set(key, { uid, internal: rotation.internal });
    return { ...rotation, read };
  }

  /** Forgets the token of a deleted TtsDeployment. */
  forget(key: string): void {
    this.#known.delete(key);
    const [namespace = "", name = ""] = key.split("/");
    this.#options.secrets.forget(objectKey(tokenRef({ namespace, name })));
  }
}
