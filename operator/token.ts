import { children } from "../config/contract/names.ts";
import type { ClusterClient } from "./cluster/client.ts";
import { type InternalToken, readTokenSecret } from "./desired/secret.ts";
import { isOwnedBy, secretRef } from "./observe.ts";
import type { TtsDeployment } from "./observed.ts";

/**
 * The internal token of each TtsDeployment: made once, then kept as its Secret holds it. A Secret that somebody deletes comes back
 * with the same token, since pods would notice a new one at different times and refuse each other meanwhile.
 */
export class TokenKeeper {
  readonly #client: ClusterClient;
  readonly #newToken: () => string;
  /** By namespace and name of the TtsDeployment. */
  readonly #known = new Map<string, { uid: string; token: InternalToken }>();

  constructor(client: ClusterClient, newToken: () => string) {
    this.#client = client;
    this.#newToken = newToken;
  }

  async tokenOf(owner: TtsDeployment): Promise<InternalToken> {
    const { namespace, name, uid } = owner.metadata;
    const key = `${namespace}/${name}`;
    const secret = await this.#client.get(secretRef(namespace, children.token(name)));
    const stored = secret && isOwnedBy(secret, owner) ? readTokenSecret(secret) : undefined;
    const known = this.#known.get(key);
    const token = stored ?? (known?.uid === uid ? known.token : this.#make());
    this.#known.set(key, { uid, token });
    return token;
  }

  /** The TtsDeployment of this key is gone. */
  forget(key: string): void {
    this.#known.delete(key);
  }

  #make(): InternalToken {
    const token = this.#newToken();
    return { token, accepted: token };
  }
}
