import { children, requests } from "../config/contract/names.ts";
import type { ClusterClient } from "./cluster/client.ts";
import { type InternalToken, readTokenSecret } from "./desired/secret.ts";
import { firstToken, type Rotation, rotate } from "./desired/token-rotation.ts";
import type { Clock } from "./loop/clock.ts";
import { isOwnedBy, secretRef } from "./observe.ts";
import type { TtsDeployment } from "./observed.ts";

export interface TokenKeeperOptions {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly newToken: () => string;
  /** Longest time that every kubelet takes to renew its pods' files. */
  readonly overlapMs: number;
}

const dayMs = 86_400_000;

/**
 * The internal token of each TtsDeployment, as its Secret holds it, replaced step by step. A Secret that somebody deletes comes back
 * with the same token, since pods would notice a new one at different times and refuse each other meanwhile.
 */
export class TokenKeeper {
  readonly #options: TokenKeeperOptions;
  /** By namespace and name of the TtsDeployment. */
  readonly #known = new Map<string, { uid: string; internal: InternalToken }>();

  constructor(options: TokenKeeperOptions) {
    this.#options = options;
  }

  async tokenOf(owner: TtsDeployment): Promise<Rotation> {
    const { namespace, name, uid, annotations } = owner.metadata;
    const { client, clock, newToken, overlapMs } = this.#options;
    const key = `${namespace}/${name}`;
    const terms = {
      now: clock.nowMs(),
      asked: annotations?.[requests.rotateToken],
      everyMs: owner.spec.internalToken.rotateEveryDays * dayMs,
      overlapMs,
      newToken,
    };
    const secret = await client.get(secretRef(namespace, children.token(name)));
    const stored = secret && isOwnedBy(secret, owner) ? readTokenSecret(secret) : undefined;
    const known = this.#known.get(key);
    const held = stored ?? (known?.uid === uid ? known.internal : firstToken(terms));
    const rotation = rotate(held, terms);
    this.#known.set(key, { uid, internal: rotation.internal });
    return rotation;
  }

  /** The TtsDeployment of this key is gone. */
  forget(key: string): void {
    this.#known.delete(key);
  }
}
